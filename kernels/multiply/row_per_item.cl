/* row_per_item.cl - C = A B with a launch of one dimension: an item computes a whole row of C.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31. Any local
 * size; items past the last row do nothing.
 *
 * The MQL5 article's fourth step. One idea against private_sum.cl: fewer and longer items, so that starting one costs
 * less, and a row of A is read by one item alone. It is the ground for the next steps rather than a gain: with 1000
 * rows a large GPU has too few items to hide its memory.
 */
__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(0);
    if (r >= rows)
        return;
    for (int c = 0; c < columns; c++) {
        REAL sum = (REAL)0;
        for (int k = 0; k < inner; k++)
            sum += A[r * inner + k] * B[c * inner + k];
        C[r * columns + c] = sum;
    }
}
