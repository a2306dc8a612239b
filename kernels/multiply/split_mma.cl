/* split_mma.cl - C = A B on tensor cores from panels of halves, near single precision; one group a tile.
 *
 *   C[r * stride + c] = sum over k of left[r, k] * right[k, c],   r < rows, c < columns
 *
 * left and right: panels of width TILE as split_mma.clh describes them, inner padded to a multiple of DEPTH. With SCALED each
 * row of A and column of B has a scale of its own, which its largest tells (halves.clh) and which is undone here; the tables
 * have whole panels. blocks lists (block row, block column), each of TILE x TILE. split_mma_ptx.clh has the instructions;
 * split_mma_tile.clh says how a tile is summed up by them, and how groups share the blocks.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const uint4 *restrict left, __global const uint4 *restrict right, SCALES(left_largest)
              SCALES(right_largest) __global SUM *restrict C, const int rows, const int columns, const int inner,
              const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts, const int whole,
              const int slices, const int more)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(128)));
    tile_of_group(left, right, C, rows, columns, inner, stride, blocks, parts, whole, slices, more, 0,
                  SCALE_TABLE(left_largest), SCALE_TABLE(right_largest), stages);
}
