/* multiply.cl - C = A B for each pair of matrices of two batches on a CPU device; one work-item a group.
 *
 *   A(m, r, k) = left[left_begin + m * left_matrix + r * row_step + k * left_step],      r < rows, k < inner
 *   B(m, k, c) = right[right_begin + m * right_matrix + k * right_step + c * column_step],   c < columns
 *   C[(m * rows + r) * columns + c] = sum over k of A(m, r, k) * B(m, k, c),   m < count
 *
 * After packed.clh. As in gram.cl, a group takes `each` matrices, and each of them alone. `deep` rows of MICRO_COLUMNS columns
 * of B at a time are packed; A is read where it lies.
 *
 *   panel   local if RIGHT_LOCAL, else scratch: MICRO_COLUMNS x deep
 */
static inline __attribute__((always_inline)) void
pack(__global const REAL *at, RIGHT REAL *panel, const int count, const int valid, const long right_step,
     const long column_step)
{
    if (valid == MICRO_COLUMNS && column_step == 1)
        for (int k = 0; k < count; k++, at += right_step, panel += MICRO_COLUMNS)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; j++)
                panel[j] = at[j];
    else
        for (int k = 0; k < count; k++, at += right_step, panel += MICRO_COLUMNS) {
            for (int j = 0; j < valid; j++)
                panel[j] = at[j * column_step];
            for (int j = valid; j < MICRO_COLUMNS; j++)
                panel[j] = 0;
        }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void multiply(__global const REAL *restrict left, __global const REAL *restrict right, __global SUM *restrict C,
              RIGHT REAL *restrict panel, const int count, const int each, const int rows, const int columns,
              const int inner, const int deep, const long left_begin, const long left_matrix, const long row_step,
              const long left_step, const long right_begin, const long right_matrix, const long right_step,
              const long column_step)
{
    const int first = get_group_id(0) * each, last = min(first + each, count);
    for (int m = first; m < last; m++) {
        __global const REAL *const A = left + left_begin + m * left_matrix;
        __global const REAL *const B = right + right_begin + m * right_matrix;
        __global SUM *const result = C + (size_t)m * rows * columns;
        for (int c = 0; c < columns; c += MICRO_COLUMNS)
            for (int k = 0; k < inner; k += deep) {
                const int here = min(deep, inner - k), valid = min(MICRO_COLUMNS, columns - c);
                pack(B + k * right_step + c * column_step, panel, here, valid, right_step, column_step);
                for (int r = 0; r < rows; r += MICRO_ROWS) {
                    const int there = min(MICRO_ROWS, rows - r);
                    VECTOR sum[MICRO_ROWS][VECTORS];
                    LEFT const REAL *row[MICRO_ROWS];
                    /* rows behind the last are the last again: nothing outside A is read, and they are not stored */
#pragma unroll
                    for (int i = 0; i < MICRO_ROWS; i++)
                        row[i] = A + (r + min(i, there - 1)) * row_step + k * left_step;
                    micro_tile(row, left_step, panel, here, sum);
                    store_tile(result + r * columns + c, columns, sum, there, valid, k == 0);
                }
            }
    }
}
