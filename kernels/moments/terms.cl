/* terms.cl - what finish.clh wants to know of each column.
 *
 *   terms[j]         = (found[0 * width + j] + found[1 * width + j] + ...) / count,   `chunks` terms, in this order
 *   terms[width + j] = 1 / scale[j],   j < width
 *
 * `found` is that of pack_centred_squares.cl: sums over chunks, then origins, then scales, powers of two. One item a column.
 */
#ifndef GROUP
#define GROUP 64
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void terms_of(__global const SUM *restrict found, __global SUM *restrict terms, const int width, const int chunks,
              const SUM count)
{
    const int j = get_global_id(0);
    if (j >= width)
        return;
    SUM total = 0;
#pragma unroll 8
    for (int i = 0; i < chunks; i++)
        total += found[(size_t)i * width + j];
    terms[j] = total / count;
    terms[width + j] = 1 / found[(size_t)(chunks + 1) * width + j];
}
