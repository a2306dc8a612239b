/* listed_sums.cl - sums of every column over lists of rows, and of its squares: what a column has on the rows of another.
 *
 *   sums[l * width + c] = sum over the rows k of list l of z(k, c), and sums[(lists + l) * width + c] that of z(k, c) squared
 *
 * or that and what was there before if `more` is not 0. List l is list[edges[l]] .. list[edges[lists + l] - 1], rows of which
 * the first of the panels is `first`. Panels as moments/pack_centred.cl lays them out: a row of PANEL columns side by side,
 * so a list takes whole vectors of columns and none of the rows that it does not name. Few values are missing as a rule: a
 * list of them is short, and the column's sum less that of the list is the sum over the rows that are there.
 *
 * For CPU devices: one item does a panel and LISTS lists; groups are (panels, lists / LISTS), rounded up. A GPU takes tile_sums.cl.
 */
#ifndef PANEL
#define PANEL 8
#endif
#ifndef LISTS
#define LISTS 16        /* lists of a group, while the panel stays in cache */
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void listed_sums(__global const REAL *restrict panels, __global const int *restrict list, __global const int *restrict edges,
                 __global SUM *restrict sums, const int lists, const int rows_padded, const int first, const int more)
{
    const int p = get_group_id(0), width = get_num_groups(0) * PANEL;
    const int end = min((int)(get_group_id(1) + 1) * LISTS, lists);
    __global const REAL *panel = panels + ((size_t)p * rows_padded - first) * PANEL;

    for (int l = get_group_id(1) * LISTS; l < end; l++) {
        __global SUM *out = sums + (size_t)l * width + p * PANEL, *out_squares = out + (size_t)lists * width;
        SUM sum[PANEL], squares[PANEL];
#pragma unroll
        for (int o = 0; o < PANEL; o++) {
            sum[o] = more ? out[o] : (SUM)0;
            squares[o] = more ? out_squares[o] : (SUM)0;
        }
        for (int k = edges[l]; k < edges[lists + l]; k++) {
            __global const REAL *at = panel + (size_t)list[k] * PANEL;
#pragma unroll
            for (int o = 0; o < PANEL; o++) {
                const SUM z = at[o];
                sum[o] += z;
                squares[o] += z * z;
            }
        }
#pragma unroll
        for (int o = 0; o < PANEL; o++) {
            out[o] = sum[o];
            out_squares[o] = squares[o];
        }
    }
}
