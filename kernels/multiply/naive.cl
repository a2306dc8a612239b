/* naive.cl - C = A B, one work-item an element, the sum kept in global memory: the rung that all others must equal.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[k * columns + c],   r < rows, c < columns, k < inner
 *
 * A, B and C are row-major linear buffers; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. The launch has two dimensions, of any local size, rounded up past the matrix as it likes.
 *
 * The MQL5 article's first step: dimension 0 walks down the rows. So neighbouring items of a GPU read elements of A
 * that lie a whole row apart, and each product is a read and a write of C. It should win over the serial loop only by
 * its number of items.
 *
 *   ROW_DIMENSION   which dimension walks down the rows: 0 as in the article; with 1 neighbouring items share a row,
 *                   and their reads of B and writes of C lie side by side, which is what a GPU calls coalesced
 */
#ifndef ROW_DIMENSION
#define ROW_DIMENSION 0
#endif
#if ROW_DIMENSION != 0 && ROW_DIMENSION != 1
#error "ROW_DIMENSION must be 0 or 1"
#endif

__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(ROW_DIMENSION), c = get_global_id(1 - ROW_DIMENSION);
    if (r >= rows || c >= columns)
        return;
    C[r * columns + c] = (REAL)0;
    for (int k = 0; k < inner; k++)
        C[r * columns + c] += A[r * inner + k] * B[k * columns + c];
}
