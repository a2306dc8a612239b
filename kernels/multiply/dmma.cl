/* dmma.cl - C = A B in double precision on the tensor cores of NVIDIA GPUs, in one launch; one group a piece of a tile.
 *
 *   C[r * stride + c] = sum over k < inner of A[r, k] * B[k, c],   r < rows, c < columns
 *
 * A, as (inner, rows), and B lie as `struct operand` of dmma.clh says, by start, panel_step and row_step of each. pieces cover
 * all of C; with `more`, all is added to what C holds. There is nothing to finish (finish.clh). dmma_multiply.clh
 * and dmma_ptx.clh have the instructions, dmma_copy.clh says how A and B get to local memory in time, dmma_tile.clh how a tile
 * is summed up, and dmma_parts.clh what parts and marks are.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const REAL *restrict A, __global const REAL *restrict B, __global SUM *restrict C, const int rows,
              const int columns, const int inner, const int stride, const long left_start, const long left_panel_step,
              const long left_row_step, const long right_start, const long right_panel_step, const long right_row_step,
              __global const int8 *restrict pieces, __global SUM *restrict parts, __global int *restrict marks, const int more)
{
    __local PAIR stages[LOCAL_PAIRS] __attribute__((aligned(128)));
    __local long arrivals[ARRIVALS];
    __local int seen;
    const struct operand left = {A + left_start, left_panel_step, left_row_step, rows};
    const struct operand right = {B + right_start, right_panel_step, right_row_step, columns};
    const struct finish finish = FINISH;
    do_piece(left, right, C, C, finish, rows, columns, inner, stride, pieces, parts, marks, 0, more, stages, arrivals, &seen);
}
