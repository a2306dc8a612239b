/* tiled_padded.cl - C = A B as tiled.cl, the rows of the local tiles a few elements longer than a tile.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[k * columns + c],   r < rows, c < columns, k < inner
 *
 * A, B and C are row-major; rows * inner, inner * columns and rows * columns are below 2^31. The local size is
 * (TILE, TILE); a tile that sticks out of a matrix is filled up with zeros, so any sizes are right.
 *
 * The memory article's next step, the bank offset. One idea against tiled.cl: the items of a tile's column meet
 * different banks of local memory. It should win nothing here, and that is its lesson: the loop reads left[y][k], the
 * same for a whole row of items, and right[k][x], side by side, so no bank is asked twice. The offset pays where a
 * tile is read by columns, as a transpose does.
 *
 *   TILE   side of the square block that a work-group shares; a power of two
 *   PAD    elements added to each row of a tile
 */
#ifndef TILE
#define TILE 16
#endif
#if TILE & (TILE - 1)
#error "TILE must be a power of two"
#endif
#ifndef PAD
#define PAD 1
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows, const int inner,
              const int columns)
{
    __local REAL left[TILE][TILE + PAD], right[TILE][TILE + PAD];
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
