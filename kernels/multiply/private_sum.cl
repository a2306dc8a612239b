/* private_sum.cl - C = A B with the running sum in a register instead of in C.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31. The
 * launch has two dimensions, of any local size, rounded up past the matrix as it likes.
 *
 * The MQL5 article's third step. One idea against coalesced.cl: C is written once and never read. It should win
 * wherever the compiler may not do so by itself, and it may not: A, B and C could overlap.
 */
__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(0), c = get_global_id(1);
    if (r >= rows || c >= columns)
        return;
    REAL sum = (REAL)0;
    for (int k = 0; k < inner; k++)
        sum += A[r * inner + k] * B[c * inner + k];
    C[r * columns + c] = sum;
}
