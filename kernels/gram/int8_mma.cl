/* int8_mma.cl - C = X'X in double precision by integers of 8 bits on tensor cores; one group a tile of the upper triangle.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns
 *
 * panels: of width TILE as int8.clh describes them, inner padded to a multiple of DEPTH; X is packed once and read as both
 * operands. If SCALED, each sum comes out times powers[r] * powers[c], a table of whole panels. blocks lists (block row, block
 * column), each of TILE x TILE, that touch the upper triangle; a group writes its sums to both sides of the diagonal.
 * int8_tile.clh says how a tile is summed up, and how groups share the blocks by means of parts, whole, slices and more.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const uint4 *restrict panels, POWERS(powers) __global SUM *restrict C, const int columns,
          const int inner, const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts,
          const int whole, const int slices, const int more)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(128)));
    tile_of_group(panels, panels, SUMS_POWERS(powers), SUMS_POWERS(powers), C, columns, columns, inner, stride, blocks,
                  parts, whole, slices, more, 1, stages);
}
