/* split_mma.cl - C = A B by mma.sync, near single precision; groups take tiles of the result in turn.
 *
 *   C[r * stride + c] = sum over k of A[r, k] * B[k, c],   r < rows, c < columns
 *
 * left, right: panels of the rows of A and of the columns of B as split_panels.clh describes them, inner padded to a multiple
 * of DEPTH. With SCALED each row of A and column of B has a scale of its own, which its largest tells (halves.clh) and which is
 * undone here. blocks lists (block row, block column), each of ROWS x COLUMNS. What is put into C is the sum as it is
 * (finish.clh). split_mma_ptx.clh has the instructions, split_put.clh says how groups share `tasks` by means of parts, whole,
 * slices and more, split_mma_tile.clh how a tile is summed up, and split_plain.clh does so without the instructions.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void multiply(__global const uint4 *restrict left, __global const uint4 *restrict right, SCALES(left_largest)
              SCALES(right_largest) __global SUM *restrict C, const int rows, const int columns, const int inner,
              const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts, const int whole,
              const int slices, const int more, const int tasks, __global REAL *restrict kept)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(1024)));
    __local ulong arrivals[LOCAL_BARRIERS];
    const struct product p = {
        left, right, C, parts, kept, blocks, SCALE_TABLE(left_largest), SCALE_TABLE(right_largest), RESULTS(C), FINISH, rows,
        columns, inner, stride, whole, slices, more, tasks, 0
    };
    all_tasks(p, stages, arrivals);
}
