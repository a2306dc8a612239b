/* register_tiled.cl - C = A B on any device with local memory, from packed panels; one group a TILE x TILE block.
 *
 *   C[r * stride + c] = sum over k of left[r, k] * right[k, c],   r < rows, c < columns
 *
 * left and right: panels of width TILE (pack_squares.cl), inner padded to a multiple of STEP; blocks[g] = (block row,
 * block column) of group g. See register_tiled.clh for the tile itself.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const VECTOR *restrict left, __global const VECTOR *restrict right, __global SUM *restrict C,
              const int rows, const int columns, const int inner, const int stride, __global const int2 *restrict blocks)
{
    __local VECTOR lefts[2][STEP_VECTORS], rights[2][STEP_VECTORS];
    __local REAL totals[TOTALS];
    const int2 block = blocks[get_group_id(0)];
    tile_of_panels(left + (size_t)block.x * inner * ROW_VECTORS, right + (size_t)block.y * inner * ROW_VECTORS, C, rows,
                   columns, inner, stride, block.x * TILE, block.y * TILE, lefts, rights, totals);
}
