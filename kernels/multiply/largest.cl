/* largest.cl - the largest |x| of each strip of a float32 matrix in chunks of inner indices, told by its bits (halves.clh).
 *
 *   parts[c * width + j] = greatest of bits(|source[k * inner_stride + j * strip_stride]|),   c * chunk <= k < (c + 1) * chunk
 *
 * for k < inner and j < strips; 0 for strips <= j < width. moments/pack_centred_halves.cl puts the chunks together and packs
 * z = x / 2^e. One group a chunk and SQUARE strips; scaling.clh says how it looks.
 */
__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void largest(__global const uint *restrict source, __global uint *restrict parts, const int strips, const int inner,
             const int chunk, const long inner_stride, const long strip_stride)
{
    __local uint found[SQUARE][SQUARE + 1];
    const int first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE, begin = get_group_id(1) * chunk;
    const uint most =
        largest_of(source, first, strips, begin, min(begin + chunk, inner), inner_stride, strip_stride, found);
    if (get_local_id(1) == 0)
        parts[(size_t)get_group_id(1) * width + first + get_local_id(0)] = most;
}
