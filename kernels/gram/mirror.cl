/* mirror.cl - copy the upper triangle of a square matrix onto the lower one: C[c, r] = C[r, c] for r < c.
 *
 * One group of SIDE x DOWN items a SIDE x SIDE block on or above the diagonal, blocks[g] = (block row, block column).
 * Reads and writes both run along rows; the turn happens in local memory, whose rows are one element longer than a
 * block so that the items of a column meet different banks.
 */
#ifndef SIDE
#define SIDE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void mirror(__global SUM *C, const int columns, const int stride, __global const int2 *restrict blocks)
{
    __local SUM block[SIDE][SIDE + 1];
    const int2 at = blocks[get_group_id(0)];
    const int x = get_local_id(0);
    for (int y = get_local_id(1); y < SIDE; y += DOWN) {
        const int r = at.x * SIDE + y, c = at.y * SIDE + x;
        if (r < columns && c < columns)
            block[y][x] = C[(size_t)r * stride + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = get_local_id(1); y < SIDE; y += DOWN) {
        const int r = at.y * SIDE + y, c = at.x * SIDE + x;
        if (r < columns && c < r)
            C[(size_t)r * stride + c] = block[x][y];
    }
}
