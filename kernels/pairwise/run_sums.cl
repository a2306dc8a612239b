/* run_sums.cl - running sums of every column, and of its squares, where columns begin: for those that miss nothing before.
 *
 *   sums[r * width + c] = sum of z(k, c) over the rows k < edges[r], or with `up` over the others
 *
 * and sums[(runs + r) * width + c] that of its squares, for begin <= r < end; edges increase. The matrix has `height` rows.
 * Panels as moments/pack_centred_squares.cl lays them out hold a slab of `rows` of them, from row `first` on; the sums are
 * those of this slab, or with `more` are added to what is there. They are added up in SUM and leave in REAL.
 *
 * Symbols that begin late miss their first rows and no others. Then one walk along a column tells what it sums up to beside
 * each of them, where lists would add up the same rows again for all. The walk begins at the top, or with `up` at the bottom.
 *
 * One group of LANES x DOWN items does LANES columns. Each row of items sums up a part of the rows that a walk reaches, learns
 * what the parts before come to, and walks along its own part a second time.
 */
#ifndef PANEL
#define PANEL 32
#endif
#ifndef LANES
#define LANES 32
#endif
#ifndef DOWN
#define DOWN 2
#endif
#if PANEL % LANES != 0
#error "a panel must be whole runs of LANES columns"
#endif

/* Rows of the slab that the n-th sum of a walk takes, and the row that is the k-th of a walk. */
#define RUN_OF(n) (up ? end - 1 - (n) : begin + (n))
#define EXTENT(n) min(max(up ? first + rows - edges[RUN_OF(n)] : edges[RUN_OF(n)] - first, 0), rows)
#define ROW_OF(k) (up ? rows - 1 - (k) : (k))
#define VALUE(k) strip[(size_t)ROW_OF(k) * PANEL + column % PANEL + lane]

__kernel __attribute__((reqd_work_group_size(LANES, DOWN, 1)))
void run_sums(__global const REAL *restrict panels, __global const int *restrict edges, __global REAL *restrict sums,
              const int begin, const int end, const int runs, const int first, const int rows, const int rows_padded,
              const int up, const int more)
{
    __local SUM totals[DOWN][LANES], all_squares[DOWN][LANES];
    const int lane = get_local_id(0), y = get_local_id(1), column = get_group_id(0) * LANES;
    const int width = get_num_groups(0) * LANES, count = end - begin, reached = EXTENT(count - 1);
    const int part = (reached + DOWN - 1) / DOWN, start = min(y * part, reached), stop = min(start + part, reached);
    __global const REAL *strip = panels + (size_t)(column / PANEL) * rows_padded * PANEL;
    SUM total = 0, squares = 0;

#pragma unroll 8
    for (int k = start; k < stop; k++) {
        const SUM z = VALUE(k);
        total += z;
        squares += z * z;
    }
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
        for (; k < extent; k++) {
            const SUM z = VALUE(k);
            total += z;
            squares += z * z;
        }
        __global REAL *to = sums + (size_t)RUN_OF(n) * width + column + lane, *to_squares = to + (size_t)runs * width;
        *to = more ? *to + total : total;
        *to_squares = more ? *to_squares + squares : squares;
    }
}
