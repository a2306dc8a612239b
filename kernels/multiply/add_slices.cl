/* add_slices.cl - add up the results that the slices of a product's inner indices left (SLICED of common.clh).
 *
 *   C[i] = slices[i] + slices[size + i] + slices[2 * size + i] + ...,   i < size, `count` terms, in this order
 *
 * or C[i] + that sum if `more` is not 0: a result also grows slab by slab. One item an element and a fixed order, so the
 * bits are the same on every run; and the same on both sides of a diagonal, where the terms are.
 */
#ifndef GROUP
#define GROUP 64        /* work-items of a group */
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_slices(__global const SUM *restrict slices, __global SUM *restrict C, const int size, const int count,
                const int more)
{
    const int i = get_global_id(0);
    if (i >= size)
        return;
    SUM sum = slices[i];
    for (int s = 1; s < count; s++)
        sum += slices[(size_t)s * size + i];
    C[i] = more ? C[i] + sum : sum;
}
