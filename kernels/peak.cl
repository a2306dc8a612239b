/* peak.cl - the most a device can do: multiply-adds on registers alone, with no memory in the loop.
 *
 *   out[i] = the sum of CHAINS * WIDTH chains  x <- x * scale + shift, `count` times,  for item i
 *
 * One chain waits for its last result, so CHAINS of them run at once. A call counts 2 * CHAINS * WIDTH * count
 * operations an item. Any launch of one dimension; out has an element for each item. scale and shift are arguments,
 * so that the compiler cannot know what the loop gives, and out keeps it from being left away.
 *
 *   CHAINS   independent chains of vectors; enough to fill the pipeline, few enough to stay in registers
 */
#ifndef CHAINS
#define CHAINS 8
#endif

__kernel void peak(__global REAL *out, const REAL scale, const REAL shift, const int count)
{
    VECTOR x[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++)
        x[i] = (VECTOR)((REAL)get_local_id(0) + (REAL)i);
    for (int n = 0; n < count; n++)
#pragma unroll
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * (VECTOR)(scale) + (VECTOR)(shift);
    VECTOR all = x[0];
#pragma unroll
    for (int i = 1; i < CHAINS; i++)
        all += x[i];
    REAL sum = (REAL)0;
    for (int j = 0; j < WIDTH; j++)
        sum += ((REAL *)&all)[j];
    out[get_global_id(0)] = sum;
}
