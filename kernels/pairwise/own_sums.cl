/* own_sums.cl - what each column sums up to on all its rows, and its squares.
 *
 *   own[j] = found[0 * width + j] + found[1 * width + j] + ..., `chunks` terms, in this order
 *   own[columns + j] = products[j * columns + j]
 *
 * found as moments/pack_centred_squares.cl leaves it. One item a column.
 */
#ifndef ITEMS
#define ITEMS 32
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void own_sums(__global const SUM *restrict found, __global const SUM *restrict products, __global SUM *restrict own,
              const int columns, const int width, const int chunks)
{
    const int j = get_global_id(0);
    SUM total = 0;
    if (j >= columns)
        return;
#pragma unroll 4
    for (int c = 0; c < chunks; c++)
        total += found[(size_t)c * width + j];
    own[j] = total;
    own[columns + j] = products[(size_t)j * columns + j];
}
