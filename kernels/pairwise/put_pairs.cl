/* put_pairs.cl - put single elements into a symmetric matrix: C[i, j] = C[j, i] = values[p] for (i, j) = pairs[p].
 *
 * One item a pair; each is there once.
 */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void put_pairs(__global REAL *restrict C, __global const int2 *restrict pairs, __global const REAL *restrict values,
               const int columns)
{
    const int p = get_global_id(0), i = pairs[p].x, j = pairs[p].y;
    C[(size_t)i * columns + j] = C[(size_t)j * columns + i] = values[p];
}
