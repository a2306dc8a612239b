/* packed.cl - C = X'X on a CPU device, from packed panels; one work-item a group.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns, k < inner; symmetric bit for bit
 *
 * panels: MICRO_COLUMNS columns of X each (pack.cl, inner not padded). Both operands are read from the same panels,
 * so X is packed once. blocks[g] = (block row, block column) of group g; only
 * blocks that touch the upper triangle are listed. A group writes its part of the triangle, then copies it to the
 * other side while it is still in cache. Rows of a block start and end with a panel: so the corner below the diagonal
 * that a micro-tile on it also computes is this group's own, and no two groups write one element. If SLICED, slice s
 * of the inner indices is summed into C + s * columns * stride (common.clh); each is symmetric, and so is their sum.
 */
#if MICRO_COLUMNS % MICRO_ROWS != 0
#error "MICRO_COLUMNS must be a multiple of MICRO_ROWS"
#endif
#if (BLOCK_ROWS * MICRO_ROWS) % MICRO_COLUMNS != 0
#error "BLOCK_ROWS * MICRO_ROWS must be a multiple of MICRO_COLUMNS"
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gram(__global const REAL *restrict panels, __global SUM *restrict C, const int columns, const int inner,
          const int stride, __global const int2 *restrict blocks)
{
    const int2 block = blocks[get_group_id(0)];
    const int row_begin = block.x * BLOCK_ROWS * MICRO_ROWS;
    const int column_begin = block.y * BLOCK_COLUMNS * MICRO_COLUMNS;
    const int row_end = min(row_begin + BLOCK_ROWS * MICRO_ROWS, columns);
    const int column_end = min(column_begin + BLOCK_COLUMNS * MICRO_COLUMNS, columns);
    const int begin = SLICE_BEGIN(inner, BLOCK_INNER), end = SLICE_END(inner, BLOCK_INNER);

    C += SLICE_RESULT((size_t)columns * stride);
    for (int k = begin; k < end; k += BLOCK_INNER) {
        const int count = min(BLOCK_INNER, end - k);
        for (int c = column_begin; c < column_end; c += MICRO_COLUMNS) {
            const int last = min(row_end, c + MICRO_COLUMNS);
            for (int r = row_begin; r < last; r += MICRO_ROWS) {
                VECTOR sum[MICRO_ROWS][VECTORS];
                const int panel = r / MICRO_COLUMNS;
                __global const REAL *row[MICRO_ROWS];
#pragma unroll
                for (int i = 0; i < MICRO_ROWS; i++)
                    row[i] = panels + ((size_t)panel * inner + k) * MICRO_COLUMNS + r % MICRO_COLUMNS + i;
                micro_tile(row, MICRO_COLUMNS, panels + ((size_t)c * inner) + (size_t)k * MICRO_COLUMNS, count, sum);
                store_tile(C + (size_t)r * stride + c, stride, sum, min(MICRO_ROWS, columns - r),
                           min(MICRO_COLUMNS, columns - c), k == begin);
            }
        }
    }
    for (int c = column_begin; c < column_end; c++) {
        const int last = min(row_end, c);
        for (int r = row_begin; r < last; r++)
            C[(size_t)c * stride + r] = C[(size_t)r * stride + c];
    }
}
