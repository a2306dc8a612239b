/* pack_centred_split.cl - centre and scale a matrix on its way into panels of halves, which split_mma.clh describes.
 *
 *   hi(k, j) + lo(k, j) = SPLIT_SCALE * z(k, j)              see halves.clh
 *   panels[((p * rows_padded / 2 + k / 2) * PLANES + part) * PANEL + place] = part (0: hi, 1: lo) of row k in the low half,
 *                                                                         of row k + 1 in the high half, k even
 *
 * where place is 32 * (j / 32) + SPLIT_PLACE(j % 32, k / 2) for column j of panel p. For z see centring.clh, |z| < 1; for
 * `found` and how a group goes about it, pack_centred_squares.cl. rows_padded and chunk are multiples of SQUARE.
 */
#ifndef PANEL
#define PANEL SQUARE
#endif
#ifndef PLANES
#define PLANES 2        /* hi and lo, or hi alone */
#endif
#if PANEL % SQUARE != 0
#error "a panel must be whole squares"
#endif

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(__global const SOURCE *restrict source, __global uint *restrict panels, __global const SUM *restrict table,
                  __global SUM *restrict found, const int columns, const int rows, const int rows_padded, const int chunk,
                  const int measured, const int count, const int more, const long row_stride, const long column_stride)
{
    __local SOURCE square[SPAN][SQUARE + 1];
    __local SUM sums[DOWN][SQUARE];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE;
    const int begin = get_group_id(1) * chunk, end = min(begin + chunk, rows_padded);
    __global const SOURCE *from = source + (long)get_global_offset(1) * row_stride;
    __global uint *out = panels + (size_t)(first / PANEL) * (rows_padded / 2) * PLANES * PANEL + first % PANEL;
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
        for (int i = 0; i < EACH; i += 2) {
            const int k = at + ROW(i), row = k / 2, exists = first + x < columns;
            const REAL upper = exists && k < rows ? taken(now[i], &centre, &sum) : (REAL)0;
            const REAL lower = exists && k + 1 < rows ? taken(now[i + 1], &centre, &sum) : (REAL)0;
            const uint2 words = halves_of(upper * SPLIT_SCALE, lower * SPLIT_SCALE);
            __global uint *to = out + (size_t)row * PLANES * PANEL + SPLIT_PLACE(x, row);
            if (k < rows_padded) {
                to[0] = words.x;
                if (PLANES == 2)
                    to[PANEL] = words.y;
            }
        }
    }
    put_residue(found, sum, more, sums);
}
