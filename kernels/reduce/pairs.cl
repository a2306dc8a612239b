/* pairs.cl - chosen elements of each matrix of a block.
 *
 *   out[(first + m) * count + p] = block[m * size + place[p]],   p = get_global_id(0) < count, m = get_global_id(1)
 *
 * where size is that of a matrix. Neighbouring items write neighbouring elements; what they read lies where it lies.
 */
#ifndef GROUP
#define GROUP 1        /* work-items of a group */
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void pairs(__global const REAL *restrict block, __global const ulong *restrict place, __global REAL *restrict out,
           const ulong size, const int count, const int first)
{
    const int p = get_global_id(0);
    if (p < count)
        out[(first + get_global_id(1)) * count + p] = block[get_global_id(1) * size + place[p]];
}
