/* pack_centred_squares.cl - centre and scale a matrix on its way into panels as pack_centred.cl does, with local memory.
 *
 *   panels[(p * rows_padded + k) * PANEL + j] = z(k, p * PANEL + j)                         rounded to REAL
 *   found[c * width + j] = sum of z(k, j) over the rows k of chunk c: c * chunk <= k < (c + 1) * chunk
 *   found[chunks * width + j], found[(chunks + 1) * width + j] = origin and scale of column j
 *
 * where z, origin and scale are those of centring.clh. A slab of rows after the first has `more` not 0: its sums are added
 * to those that are there. The sums tell what the rounding of the origin left in the mean; if MISSING, z is 0 where the
 * source is NaN, and they are sums of z as it is rounded to REAL. chunk is a multiple of SQUARE.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE columns, SPAN rows at a time; the next are on their way while some
 * are packed. Reads run along memory, whichever stride is 1, and writes along a panel, where an item always has the same column
 * and so keeps its origin, scale and sum.
 */
#ifndef PANEL
#define PANEL SQUARE
#endif
#if PANEL % SQUARE != 0
#error "a panel must be whole squares"
#endif

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(__global const SOURCE *restrict source, __global REAL *restrict panels, __global const SUM *restrict table,
                  __global SUM *restrict found, const int columns, const int rows, const int rows_padded, const int chunk,
                  const int measured, const int count, const int more, const long row_stride, const long column_stride)
{
    __local SOURCE square[SPAN][SQUARE + 1];
    __local SUM sums[DOWN][SQUARE];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE;
    const int begin = get_group_id(1) * chunk, end = min(begin + chunk, rows_padded);
    __global const SOURCE *from = source + (long)get_global_offset(1) * row_stride;
    __global REAL *out = panels + (size_t)(first / PANEL) * rows_padded * PANEL + first % PANEL;
    SOURCE next[EACH], now[EACH];
    SUM origin, scale;

    read_square(next, from, begin, rows, columns, row_stride, column_stride);
    centre_of(table, measured, count, first + x, columns, width, &origin, &scale);
    if (!more)
        put_centre(found, origin, scale);
    const struct centre centre = centre_in_parts(origin, scale);
    /* NaN as the origin is, else 0 */
    SUM sum = origin - origin;
    for (int at = begin; at < end; at += SPAN) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            now[i] = next[i];
        if (at + SPAN < end)
            read_square(next, from, at + SPAN, rows, columns, row_stride, column_stride);
        if (column_stride != 1) {
            /* slower items may still read what was turned before */
            barrier(CLK_LOCAL_MEM_FENCE);
            turn_square(now, square);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int k = at + ROW(i);
            const REAL z = k < rows && first + x < columns ? taken(now[i], &centre, &sum) : (REAL)0;
            if (k < rows_padded)
                out[(size_t)k * PANEL + x] = z;
        }
    }
    put_residue(found, sum, more, sums);
}
