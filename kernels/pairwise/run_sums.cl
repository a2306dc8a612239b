/* run_sums.cl - running sums of every column, and of its squares, where columns begin: for those that miss nothing before.
 *
 *   sums[r * width + c] = sum of z(k, c) over the rows k < edges[r], or with `up` over the others
 *   z(k, c) = (source[k * row_stride + c * column_stride] - table[c]) * table[width + c], or 0 where that is NaN
 *
 * and sums[(runs + r) * width + c] that of its squares, for begin <= r < end; edges increase. The sums are those of a slab of
 * `rows` rows from row `first` on, or with `more` are added to what is there; 0 of columns that do not exist. They are added up
 * in SUM and leave in REAL.
 *
 * Symbols that begin late miss their first rows and no others. Then one walk along a column tells what it sums up to beside
 * each of them, where lists would add up the same rows again for all. The walk begins at the top, or with `up` at the bottom.
 *
 * One group of LANES x DOWN items does LANES columns. Each row of items sums up a part of the rows that a walk reaches, learns
 * what the parts before come to, and walks along its own part a second time.
 */
#ifndef LANES
#define LANES 32
#endif
#ifndef DOWN
#define DOWN 2
#endif

/* Rows of the slab that the n-th sum of a walk takes, and the row that is the k-th of a walk. */
#define RUN_OF(n) (up ? end - 1 - (n) : begin + (n))
#define EXTENT(n) min(max(up ? first + rows - edges[RUN_OF(n)] : edges[RUN_OF(n)] - first, 0), rows)
#define ROW_OF(k) (up ? rows - 1 - (k) : (k))
/* Take the k-th row of a walk into the sums. */
#define TAKE(k) do { \
    const SUM z = ((SUM)from[ROW_OF(k) * row_stride] - origin) * scale; \
    total += z == z ? z : 0; \
    squares += z == z ? z * z : 0; } while (0)

__kernel __attribute__((reqd_work_group_size(LANES, DOWN, 1)))
void run_sums(__global const SOURCE *restrict source, __global const SUM *restrict table, __global const int *restrict edges,
              __global REAL *restrict sums, const int columns, const int begin, const int end, const int runs, const int first,
              const int rows, const int up, const int more, const long row_stride, const long column_stride)
{
    __local SUM totals[DOWN][LANES], all_squares[DOWN][LANES];
    const int lane = get_local_id(0), y = get_local_id(1), c = get_group_id(0) * LANES + lane, column = min(c, columns - 1);
    const int width = get_num_groups(0) * LANES, count = end - begin, reached = EXTENT(count - 1);
    const int part = (reached + DOWN - 1) / DOWN, start = min(y * part, reached), stop = min(start + part, reached);
    __global const SOURCE *from = source + first * row_stride + column * column_stride;
    const SUM origin = table[column], scale = c < columns ? table[width + column] : 0;
    SUM total = 0, squares = 0;

#pragma unroll 8
    for (int k = start; k < stop; k++)
        TAKE(k);
    totals[y][lane] = total;
    all_squares[y][lane] = squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    total = squares = 0;
    for (int before = 0; before < y; before++) {
        total += totals[before][lane];
        squares += all_squares[before][lane];
    }
    /* the first sum that ends in this part; those of no row are of the first part, and a part without rows has none */
    int n = 0, high = y == 0 ? 0 : count;
    while (n < high) {
        const int middle = (n + high) / 2;
        if (EXTENT(middle) > start)
            high = middle;
        else
            n = middle + 1;
    }
    for (int k = start; n < count; n++) {
        const int extent = EXTENT(n);
        if (extent > stop || (y > 0 && start == stop))
            break;
        for (; k < extent; k++)
            TAKE(k);
        __global REAL *to = sums + (size_t)RUN_OF(n) * width + c, *to_squares = to + (size_t)runs * width;
        *to = more ? *to + total : total;
        *to_squares = more ? *to_squares + squares : squares;
    }
}
