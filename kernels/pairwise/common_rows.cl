/* common_rows.cl - how many rows two columns have in common, for every pair of columns.
 *
 *   counts[i * columns + j] = sum over w of the bits that are 1 in both bits[w * columns + i] and bits[w * columns + j]
 *
 * bits as presence.cl writes them. Sixteen words and one instruction count what a product of masks needs 512 products for.
 *
 * Where j >= i an item counts, and writes both (i, j) and (j, i); groups below the diagonal have nothing to do.
 *
 * One item does ROWS columns i and COLUMNS / GROUP columns j; groups are (columns / COLUMNS, columns / ROWS), rounded up.
 */
#ifndef COLUMNS
#define COLUMNS 64      /* columns j of a group */
#endif
#ifndef GROUP
#define GROUP 1         /* items of a group: 1 on a CPU, where the compiler makes vectors of the columns */
#endif
#ifndef ROWS
#define ROWS 16         /* columns i of a group */
#endif
#if COLUMNS % GROUP != 0
#error "COLUMNS must be a multiple of GROUP"
#endif
#define OWN (COLUMNS / GROUP)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void common_rows(__global const uint *restrict bits, __global int *restrict counts, const int columns, const int words)
{
    const int first = get_group_id(0) * COLUMNS + get_local_id(0);
    const int begin = get_group_id(1) * ROWS, end = min(begin + ROWS, columns);
    if ((int)(get_group_id(0) + 1) * COLUMNS <= begin)
        return;
    const int whole = get_group_id(0) * COLUMNS + COLUMNS <= columns;

    for (int i = begin; i < end; i++) {
        __global const uint *at = bits + first;
        __global int *out = counts + (size_t)i * columns + first;
        uint sum[OWN];
        for (int o = 0; o < OWN; o++)
            sum[o] = 0;
        if (whole)
            for (int w = 0; w < words; w++, at += columns) {
                const uint mine = bits[(size_t)w * columns + i];
#pragma unroll
                for (int o = 0; o < OWN; o++)
                    sum[o] += popcount(mine & at[o * GROUP]);
            }
        else
            for (int w = 0; w < words; w++, at += columns) {
                const uint mine = bits[(size_t)w * columns + i];
                for (int o = 0; o < OWN; o++)
                    if (first + o * GROUP < columns)
                        sum[o] += popcount(mine & at[o * GROUP]);
            }
        for (int o = 0; o < OWN; o++) {
            const int j = first + o * GROUP;
            if (j >= i && j < columns) {
                out[o * GROUP] = sum[o];
                counts[(size_t)j * columns + i] = sum[o];
            }
        }
    }
}
