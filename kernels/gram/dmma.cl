/* dmma.cl - the upper triangle of C = X'X in double precision on the tensor cores of NVIDIA GPUs; one group a tile.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns
 *
 * panels: skewed, of width TILE (multiply/pack_squares.cl), inner padded to a multiple of STEP; X is packed once and read as
 * both operands. blocks lists (block row, block column), each of TILE x TILE, that touch the upper triangle; mirror.cl does
 * the other side. dmma.clh says how a tile is summed up, dmma_copy.clh how the panels get there in time, and dmma_tile.clh
 * how groups share the blocks.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const PAIR *restrict panels, __global SUM *restrict C, const int columns, const int inner,
          const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts, const int whole,
          const int slices, const int more)
{
    __local PAIR stages[LOCAL_PAIRS] __attribute__((aligned(128)));
    __local long arrivals[ARRIVALS];
    tile_of_group(panels, panels, C, columns, columns, inner, stride, blocks, parts, whole, slices, more, stages, arrivals);
}
