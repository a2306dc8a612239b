/* turn_bits.cl - which values of a matrix are there, 32 columns of a row in a word, of what presence.cl says.
 *
 *   turned[k * across + w], bit b, is bit k % 32 of bits[k / 32 * columns + w * 32 + b]
 *
 * and 0 behind the last column. One item turns a square of 32 x 32 bits; groups are (across / ITEMS, words of presence.cl).
 */
#ifndef ITEMS
#define ITEMS 32
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void turn_bits(__global const uint *restrict bits, __global uint *restrict turned, const int columns)
{
    const int w = get_global_id(0), across = get_global_size(0);
    __global const uint *in = bits + (size_t)get_group_id(1) * columns;
    __global uint *out = turned + (size_t)get_group_id(1) * 32 * across + w;
    uint square[32], mask = 0x0000ffff;
#pragma unroll
    for (int b = 0; b < 32; b++)
        square[b] = w * 32 + b < columns ? in[w * 32 + b] : 0;
#pragma unroll
    for (int side = 16; side; side /= 2, mask ^= mask << side)
#pragma unroll
        for (int n = 0; n < 16; n++) {
            const int one = n / side * 2 * side + n % side;
            const uint other = (square[one] >> side ^ square[one + side]) & mask;
            square[one] ^= other << side;
            square[one + side] ^= other;
        }
#pragma unroll
    for (int k = 0; k < 32; k++)
        out[(size_t)k * across] = square[k];
}
