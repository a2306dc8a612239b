/* packed.cl - C = A B on a CPU device, from packed panels; one work-item a group.
 *
 *   C[r * stride + c] = sum over k of left[r, k] * right[k, c],   r < rows, c < columns, k < inner
 *
 * left: panels of MICRO_ROWS rows of A; right: panels of MICRO_COLUMNS columns of B (pack.cl, inner not padded).
 * blocks[g] = (block row, block column) of group g. A group does BLOCK_ROWS x BLOCK_COLUMNS micro-tiles, so its
 * part of the panels stays in cache while BLOCK_INNER inner indices pass; groups share nothing. If SLICED, slice s of
 * the inner indices is summed into C + s * rows * stride (common.clh).
 */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void multiply(__global const REAL *restrict left, __global const REAL *restrict right, __global SUM *restrict C,
              const int rows, const int columns, const int inner, const int stride, __global const int2 *restrict blocks)
{
    const int2 block = blocks[get_group_id(0)];
    const int row_begin = block.x * BLOCK_ROWS * MICRO_ROWS;
    const int column_begin = block.y * BLOCK_COLUMNS * MICRO_COLUMNS;
    const int row_end = min(row_begin + BLOCK_ROWS * MICRO_ROWS, rows);
    const int column_end = min(column_begin + BLOCK_COLUMNS * MICRO_COLUMNS, columns);
    const int begin = SLICE_BEGIN(inner, BLOCK_INNER), end = SLICE_END(inner, BLOCK_INNER);

    C += SLICE_RESULT((size_t)rows * stride);
    for (int k = begin; k < end; k += BLOCK_INNER) {
        const int count = min(BLOCK_INNER, end - k);
        for (int c = column_begin; c < column_end; c += MICRO_COLUMNS)
            for (int r = row_begin; r < row_end; r += MICRO_ROWS) {
                VECTOR sum[MICRO_ROWS][VECTORS];
                micro_tile(left + (size_t)r * inner + (size_t)k * MICRO_ROWS,
                           right + (size_t)c * inner + (size_t)k * MICRO_COLUMNS, count, sum);
                store_tile(C + (size_t)r * stride + c, stride, sum, min(MICRO_ROWS, rows - r),
                           min(MICRO_COLUMNS, columns - c), k == begin);
            }
    }
}
