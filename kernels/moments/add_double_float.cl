/* add_double_float.cl - add up the results that slices left (SLICED of common.clh) in pairs of floats, without float64.
 *
 *   C[i] + C[size + i] = slices[i] + slices[size + i] + slices[2 * size + i] + ...,   i < size, `count` terms, in this order
 *
 * or that and what the pair held before if `more` is not 0. The first of a pair is the rounded sum; the second collects what
 * each rounding lost, which two subtractions tell exactly (Knuth's two-sum), so a pair keeps some 48 bits. One item an
 * element. Nothing here may be reassociated: no option for fast arithmetic.
 */
#ifndef GROUP
#define GROUP 64        /* work-items of a group */
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_double_float(__global const REAL *restrict slices, __global REAL *restrict C, const int size, const int count,
                      const int more)
{
    const int i = get_global_id(0);
    if (i >= size)
        return;
    REAL high = more ? C[i] : (REAL)0, low = more ? C[size + i] : (REAL)0;
    for (int s = 0; s < count; s++) {
        const REAL term = slices[(size_t)s * size + i];
        const REAL sum = high + term;
        const REAL taken = sum - high;
        low += (high - (sum - taken)) + (term - taken);
        high = sum;
    }
    const REAL sum = high + low;
    C[i] = sum;
    C[size + i] = low - (sum - high);
}
