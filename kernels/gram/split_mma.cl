/* split_mma.cl - C = X'X on tensor cores, near single precision; one group a tile of the upper triangle.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns
 *
 * panels: of width TILE as split_mma.clh describes them, inner padded to a multiple of DEPTH; X is packed once and read as
 * both operands. With SCALED each column has a scale of its own, which its largest tells and which is undone here (halves.clh).
 * blocks lists (block row, block column), each of TILE x TILE, that touch the upper triangle; a group writes its sums to both
 * sides of the diagonal. split_mma_ptx.clh has the instructions; split_mma_tile.clh says how a tile is summed up by them, and
 * how groups share the blocks by means of parts, whole, slices and more.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const uint4 *restrict panels, SCALES(largest) __global SUM *restrict C, const int columns,
          const int inner, const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts,
          const int whole, const int slices, const int more)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(128)));
    tile_of_group(panels, panels, C, columns, columns, inner, stride, blocks, parts, whole, slices, more, 1,
                  SCALE_TABLE(largest), SCALE_TABLE(largest), stages);
}
