/* largest.cl - the largest |x| of each strip of a float32 matrix, told by its bits (halves.clh), and the scale that it makes.
 *
 *   largest[c * width + j] = greatest of bits(|source[k * inner_stride + j * strip_stride]|), c * chunk <= k < (c + 1) * chunk
 *   table[j] = 0,  table[width + j] = 2^-e of the largest (halves.clh), or 0 if that is inf          if there is one chunk
 *
 * for k < inner and j < strips; the largest is 0 for strips <= j < width. Of its own result as source, `inner` chunks of
 * `width` strips, it makes the largest of all. By the table, moments/pack_centred_split.cl and its like pack z = x / 2^e; what
 * strips make that hold an inf is left to infinite_strips.cl.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE strips; reads run along memory, whichever stride is 1, and what the
 * items found meets in local memory.
 */
#ifndef SQUARE
#define SQUARE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void largest(__global const uint *restrict source, __global uint *restrict largest, __global SUM *restrict table,
             const int strips, const int inner, const int chunk, const long inner_stride, const long strip_stride)
{
    __local uint found[SQUARE][SQUARE + 1];
    const int x = get_local_id(0), y = get_local_id(1), first = get_group_id(0) * SQUARE;
    const int width = get_num_groups(0) * SQUARE, begin = get_group_id(1) * chunk, end = min(begin + chunk, inner);
    const int turned = strip_stride != 1;
    const int lane = turned ? x : y, lanes = turned ? SQUARE : DOWN;

    for (int j = turned ? y : x; j < SQUARE; j += turned ? DOWN : SQUARE) {
        uint most = 0;
        if (first + j < strips)
#pragma unroll 8
            for (int k = begin + lane; k < end; k += lanes)
                most = max(most, source[k * inner_stride + (first + j) * strip_stride] & 0x7fffffffu);
        found[lane][j] = most;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y == 0) {
        uint most = 0;
        for (int i = 0; i < lanes; i++)
            most = max(most, found[i][x]);
        largest[(size_t)get_group_id(1) * width + first + x] = most;
        if (get_num_groups(1) == 1) {
            table[first + x] = 0;
            table[width + first + x] = most == INFINITE ? (SUM)0 : ldexp((SUM)1, -exponent_of(most));
        }
    }
}
