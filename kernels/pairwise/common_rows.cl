/* common_rows.cl - how many rows two columns have in common, for every pair of columns.
 *
 *   counts[i * columns + j] = sum over w of the bits that are 1 in both bits[w * columns + i] and bits[w * columns + j]
 *
 * bits as presence.cl writes them. Sixteen words and one instruction count what a product of masks needs 512 products for.
 *
 * Where j >= i an item counts, and writes both (i, j) and (j, i); groups below the diagonal have nothing to do.
 *
 * For CPU devices: one item does ROWS columns i and COLUMNS columns j; groups are (columns / COLUMNS, columns / ROWS), rounded
 * up. A GPU counts by tile_counts.cl.
 */
#ifndef COLUMNS
#define COLUMNS 64      /* columns j of a group */
#endif
#ifndef ROWS
#define ROWS 16         /* columns i of a group */
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void common_rows(__global const uint *restrict bits, __global int *restrict counts, const int columns, const int words)
{
    const int first = get_group_id(0) * COLUMNS;
    const int begin = get_group_id(1) * ROWS, end = min(begin + ROWS, columns);
    if ((int)(get_group_id(0) + 1) * COLUMNS <= begin)
        return;
    const int whole = get_group_id(0) * COLUMNS + COLUMNS <= columns;

    for (int i = begin; i < end; i++) {
        __global const uint *at = bits + first;
        __global int *out = counts + (size_t)i * columns + first;
        uint sum[COLUMNS];
        for (int o = 0; o < COLUMNS; o++)
            sum[o] = 0;
        if (whole)
            for (int w = 0; w < words; w++, at += columns) {
                const uint mine = bits[(size_t)w * columns + i];
#pragma unroll
                for (int o = 0; o < COLUMNS; o++)
                    sum[o] += popcount(mine & at[o]);
            }
        else
            for (int w = 0; w < words; w++, at += columns) {
                const uint mine = bits[(size_t)w * columns + i];
                for (int o = 0; o < COLUMNS; o++)
                    if (first + o < columns)
                        sum[o] += popcount(mine & at[o]);
            }
        for (int o = 0; o < COLUMNS; o++) {
            const int j = first + o;
            if (j >= i && j < columns) {
                out[o] = sum[o];
                counts[(size_t)j * columns + i] = sum[o];
            }
        }
    }
}
