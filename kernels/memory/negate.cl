/* negate.cl - turn the sign of every number where it lies: data[i] = -data[i] for i < count.
 *
 * The least that a kernel can do with data that came from the host and goes back there. It carries the zero-copy
 * experiments of the memory and the Adreno article, in which the way of the data is what is measured: copied by
 * commands, copied when the buffer is made (COPY_HOST_PTR), mapped (ALLOC_HOST_PTR), or left where it is (USE_HOST_PTR).
 * Doing it twice gives the data back, so it can be repeated for ever.
 */
#ifndef GROUP
#define GROUP 64       /* items of a group */
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void negate(__global REAL *data, const int count)
{
    const int i = get_global_id(0);
    if (i < count)
        data[i] = -data[i];
}
