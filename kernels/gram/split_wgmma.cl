/* split_wgmma.cl - C = X'X by wgmma, near single precision; groups take tiles of the upper triangle in turn.
 *
 *   C[r * stride + c] = sum over k of X[k, r] * X[k, c],   r, c < columns
 *
 * panels: as split_panels.clh describes them, inner padded to a multiple of DEPTH; X is packed once and read as both operands.
 * blocks lists (block row, block column), each of ROWS x COLUMNS, that touch the upper triangle; a group writes its sums to
 * both sides of the diagonal, unless MIRRORED is 0. With SCALED each column has a scale of its own, which is undone
 * (halves.clh); with FINISHED the sums become covariances (finish.clh). split_wgmma_ptx.clh has the instructions, split_put.clh
 * says how groups share `tasks` by means of parts, whole, slices and more, split_wgmma_tile.clh how a tile is summed up, and
 * split_plain.clh does so without the instructions.
 */
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gram(__global const uint4 *restrict panels, SCALES(largest) __global SUM *restrict C, const int columns,
          const int inner, const int stride, __global const int2 *restrict blocks, __global SUM *restrict parts,
          const int whole, const int slices, const int more, const int tasks,
          __global REAL *restrict kept FINISH_ARGUMENTS)
{
    __local uint4 stages[LOCAL_UNITS] __attribute__((aligned(1024)));
    __local ulong arrivals[LOCAL_BARRIERS];
    const struct product p = {
        panels, panels, C, parts, kept, blocks, SCALE_TABLE(largest), SCALE_TABLE(largest), RESULTS(C), FINISH, columns,
        columns, inner, stride, whole, slices, more, tasks, 1
    };
    all_tasks(p, stages, arrivals);
}
