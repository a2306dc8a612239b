/* coalesced.cl - C = A B with the second matrix column-major, so that one item reads both along memory.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. The launch has two dimensions, of any local size, rounded up past the matrix as it likes.
 *
 * The MQL5 article's second step, and its name for it. One idea against naive.cl: the loop over k walks a row of A and
 * a column of B in order, so each cache line is used whole. It should win where one item's reads follow each other, on
 * a CPU. A GPU coalesces the reads of neighbouring ITEMS, and those of A are still a row apart; see ROW_DIMENSION
 * in naive.cl for the order that does coalesce there.
 */
__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(0), c = get_global_id(1);
    if (r >= rows || c >= columns)
        return;
    C[r * columns + c] = (REAL)0;
    for (int k = 0; k < inner; k++)
        C[r * columns + c] += A[r * inner + k] * B[c * inner + k];
}
