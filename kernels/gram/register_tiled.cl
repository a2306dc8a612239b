/* register_tiled.cl - the upper triangle of C = X'X on any device with local memory; one group a TILE x TILE block.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns
 *
 * panels: of width TILE (multiply/pack_squares.cl), inner padded to a multiple of STEP; X is packed once and read as
 * both operands. blocks[g] = (block row, block column) of group g, those that touch the upper triangle. mirror.cl does the
 * other side.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const VECTOR *restrict panels, __global SUM *restrict C, const int columns, const int inner,
          const int stride, __global const int2 *restrict blocks)
{
    __local VECTOR lefts[2][STEP_VECTORS], rights[2][STEP_VECTORS];
    __local REAL totals[TOTALS];
    const int2 block = blocks[get_group_id(0)];
    tile_of_panels(panels + (size_t)block.x * inner * ROW_VECTORS, panels + (size_t)block.y * inner * ROW_VECTORS, C,
                   columns, columns, inner, stride, block.x * TILE, block.y * TILE, lefts, rights, totals);
}
