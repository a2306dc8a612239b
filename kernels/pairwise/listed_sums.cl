/* listed_sums.cl - sums of every column over lists of rows, and of its squares: what a column has on the rows of another.
 *
 *   sums[l * width + c] = sum over the rows k of list l of z(k, c), and sums[(lists + l) * width + c] that of z(k, c) squared
 *
 * or that and what was there before if `more` is not 0. List l is list[edges[l]] .. list[edges[lists + l] - 1], rows of which
 * the first of the panels is `first`. Panels as moments/pack_centred.cl lays them out: a row of PANEL columns side by side,
 * so a list takes whole vectors of columns and none of the rows that it does not name. Few values are missing as a rule: a
 * list of them is short, and the column's sum less that of the list is the sum over the rows that are there.
 *
 * One item does PANEL / GROUP columns of a panel for LISTS lists; groups are (panels, lists / LISTS), rounded up.
 */
#ifndef PANEL
#define PANEL 8
#endif
#ifndef GROUP
#define GROUP 1         /* items of a group: 1 on a CPU, where the compiler makes vectors of the columns */
#endif
#ifndef LISTS
#define LISTS 16        /* lists of a group, while the panel stays in cache */
#endif
#if PANEL % GROUP != 0
#error "PANEL must be a multiple of GROUP"
#endif
#define OWN (PANEL / GROUP)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void listed_sums(__global const REAL *restrict panels, __global const int *restrict list, __global const int *restrict edges,
                 __global SUM *restrict sums, const int lists, const int rows_padded, const int first, const int more)
{
    const int p = get_group_id(0), lane = get_local_id(0), width = get_num_groups(0) * PANEL;
    const int end = min((int)(get_group_id(1) + 1) * LISTS, lists);
    __global const REAL *panel = panels + ((size_t)p * rows_padded - first) * PANEL;

    for (int l = get_group_id(1) * LISTS; l < end; l++) {
        __global SUM *out = sums + (size_t)l * width + p * PANEL + lane, *out_squares = out + (size_t)lists * width;
        SUM sum[OWN], squares[OWN];
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            sum[o] = more ? out[o * GROUP] : (SUM)0;
            squares[o] = more ? out_squares[o * GROUP] : (SUM)0;
        }
        for (int k = edges[l]; k < edges[lists + l]; k++) {
            __global const REAL *at = panel + (size_t)list[k] * PANEL + PLACE(list[k] - first, lane);
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                const SUM z = at[o * GROUP];
                sum[o] += z;
                squares[o] += z * z;
            }
        }
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            out[o * GROUP] = sum[o];
            out_squares[o * GROUP] = squares[o];
        }
    }
}
