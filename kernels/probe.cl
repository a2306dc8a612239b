/* probe.cl - what a device must be able to do, in a few lines: the first program that it ever runs for us.
 *
 *   out[0] = 42 and out[1] = the sum of in[0..3] show that it computes;
 *   out[2] = bytes of the widest vector registers that the compiler generates code for, 0 if it does not say.
 * The host cannot learn the last from the device: a runtime may report a width that its compiler does not use.
 */
__kernel void probe(__global const REAL *in, __global REAL *out)
{
    out[0] = (REAL)42;
    out[1] = in[0] + in[1] + in[2] + in[3];
#if defined(__AVX512F__)
    out[2] = (REAL)64;
#elif defined(__AVX__)
    out[2] = (REAL)32;
#elif defined(__SSE2__) || defined(__ARM_NEON)
    out[2] = (REAL)16;
#else
    out[2] = (REAL)0;
#endif
}
