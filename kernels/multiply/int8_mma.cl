/* int8_mma.cl - C = A B in double precision by integers of 8 bits on tensor cores, of packed factors; one group a tile.
 *
 *   C[r * stride + c] = sum over k of left[k, r] * right[k, c],   r < rows, c < columns
 *
 * left and right: panels of width TILE as int8.clh describes them, inner padded to a multiple of DEPTH. If SCALED, each sum
 * comes out times down[r] * across[c], tables of whole panels. blocks lists (block row, block column), each of TILE x TILE.
 * int8_tile.clh says how a tile is summed up, and how groups share the blocks by means of parts, whole, slices and more.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const uint4 *restrict left, __global const uint4 *restrict right, POWERS(down) POWERS(across)
              __global SUM *restrict C, const int rows, const int columns, const int inner, const int stride,
              __global const int2 *restrict blocks, __global SUM *restrict parts, const int whole, const int slices,
              const int more)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(128)));
    tile_of_group(left, right, SUMS_POWERS(down), SUMS_POWERS(across), C, rows, columns, inner, stride, blocks, parts,
                  whole, slices, more, 0, stages);
}
