/* dmma.cl - C = A B in double precision on the tensor cores of NVIDIA GPUs, from packed panels; one group a tile.
 *
 *   C[r * stride + c] = sum over k of left[r, k] * right[k, c],   r < rows, c < columns
 *
 * left and right: skewed panels of width TILE (pack_squares.cl), inner padded to a multiple of STEP. blocks lists (block row,
 * block column), each of TILE x TILE. dmma.clh says how a tile is summed up, dmma_copy.clh how the panels get there in
 * time, and dmma_tile.clh how groups share the blocks.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const PAIR *restrict left, __global const PAIR *restrict right, __global SUM *restrict C,
              const int rows, const int columns, const int inner, const int stride, __global const int2 *restrict blocks,
              __global SUM *restrict parts, const int whole, const int slices, const int more)
{
    __local PAIR stages[LOCAL_PAIRS] __attribute__((aligned(128)));
    __local long arrivals[ARRIVALS];
    tile_of_group(left, right, C, rows, columns, inner, stride, blocks, parts, whole, slices, more, stages, arrivals);
}
