/* peak_int8.cl - the most tensor cores can do in 8-bit integers by mma.sync: products on registers, no memory in the loop.
 *
 *   out[i] = a sum of what item i holds of CHAINS sums of 16 x 8, to each of which 16 x 32 times 32 x 8 was added `count` times
 *
 * A call counts 2 * 16 * 8 * 32 * CHAINS * count operations for 32 items. Digits are as good as random, since how fast tensor
 * cores are within their power depends on that. Sums overflow, and nobody minds. The instruction is in int8_ptx.clh; without
 * PTX there is none, and nothing is counted.
 *
 *   CHAINS   independent chains of products; enough to fill the pipeline
 */
#ifndef PTX
#define PTX 0
#endif
#ifndef CHAINS
#define CHAINS 8
#endif
#ifndef GROUP
#define GROUP 256
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void peak_int8(__global int *out, const uint seed, const int count)
{
    int sum[CHAINS][4];
    uint word[6];
    uint4 a;
    for (int i = 0; i < 6; i++)
        word[i] = (uint)get_global_id(0) * 2654435761u + seed * (uint)(i + 1) * 40503u;
    a = (uint4)(word[0], word[1], word[2], word[3]);
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[i][e] = 0;
#if PTX
    for (int n = 0; n < count; n++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            MMA_DIGITS(sum[i], a, word[4], word[5]);
#endif
    int total = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            total += sum[i][e];
    out[get_global_id(0)] = total;
}
