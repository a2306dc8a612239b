/* dmma.cl - C = X'X in double precision on the tensor cores of NVIDIA GPUs, in one launch; one group a piece of a tile.
 *
 *   C[r * stride + c] = sum over k < inner of X[k, r] * X[k, c],   r, c < columns
 *
 * X lies as `struct operand` of dmma.clh says, by start, panel_step and row_step; both sides lie alike. pieces cover the
 * upper triangle, and the other is written with it if `mirrored`; with `more`, all is added to what C holds; with FINISHED
 * the sums become covariances (finish.clh). dmma_multiply.clh and dmma_ptx.clh have the instructions, dmma_copy.clh says how X
 * gets to local memory in time, dmma_tile.clh how a tile is summed up, and dmma_parts.clh what parts and marks are.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const REAL *restrict X, __global SUM *restrict C, const int columns, const int inner, const int stride,
          const long start, const long panel_step, const long row_step, __global const int8 *restrict pieces,
          __global SUM *restrict parts, __global int *restrict marks, const int mirrored, const int more
          FINISH_ARGUMENTS)
{
    __local PAIR stages[LOCAL_PAIRS] __attribute__((aligned(128)));
    __local long arrivals[ARRIVALS];
    __local int seen;
    const struct operand both = {X + start, panel_step, row_step, columns};
    const struct finish finish = FINISH;
    do_piece(both, both, C, RESULTS(C), finish, columns, columns, inner, stride, pieces, parts, marks, mirrored, more, stages,
             arrivals, &seen);
}
