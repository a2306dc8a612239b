/* tiled.cl - C = A B by square tiles that a work-group shares in local memory.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[k * columns + c],   r < rows, c < columns, k < inner
 *
 * A, B and C are row-major; rows * inner, inner * columns and rows * columns are below 2^31. The local size is
 * (TILE, TILE); dimension 0 walks along the columns, so that neighbouring items read and write side by side. A tile
 * that sticks out of a matrix is filled up with zeros, so any sizes are right.
 *
 * The memory article's step. One idea against private_sum.cl: an element that comes from global memory is used TILE
 * times. It should win by nearly TILE where global memory is the limit, on a GPU. The article walks down B by
 * TILE * (columns of A), which is right for square matrices only: the step down a row of B is its own number of
 * columns, as in the formula above.
 *
 *   TILE   side of the square block that a work-group shares; a power of two
 */
#ifndef TILE
#define TILE 16
#endif
#if TILE & (TILE - 1)
#error "TILE must be a power of two"
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows, const int inner,
              const int columns)
{
    __local REAL left[TILE][TILE], right[TILE][TILE];
    const int x = get_local_id(0), y = get_local_id(1);
    const int r = get_global_id(1), c = get_global_id(0);
    REAL sum = (REAL)0;
    for (int begin = 0; begin < inner; begin += TILE) {
        left[y][x] = r < rows && begin + x < inner ? A[r * inner + begin + x] : (REAL)0;
        right[y][x] = c < columns && begin + y < inner ? B[(begin + y) * columns + c] : (REAL)0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (r < rows && c < columns)
        C[r * columns + c] = sum;
}
