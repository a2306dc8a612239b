/* transpose_tile.cl - turn a matrix over by way of local memory: out[c, r] = in[r, c].
 *
 * in: rows x columns, in[r * columns + c]; out: columns x rows, out[c * rows + r].
 * A group reads a SIDE x SIDE block along its rows and writes it along its columns, so that both go to neighbouring
 * addresses; the turn happens in local memory. There a warp reads a column, whose elements lie SIDE + PAD apart. On 32
 * banks of 4 bytes, with SIDE 32:
 *
 *   PAD 0           all 32 in one bank, served one after the other
 *   PAD SIDE >> 2   40 apart, so in 4 banks: the memory article's offset, which leaves 8 conflicts in each
 *   PAD 1           33 apart, so each in a bank of its own
 *
 * This is where padding shows: the article's 16 x 16 product reads its tiles along rows or one element at a time.
 * It should win on GPUs, and cost a little on CPUs, whose local memory is a piece of the cache without banks.
 */
#ifndef SIDE
#define SIDE 32        /* side of the block that a group turns over */
#endif
#ifndef DOWN
#define DOWN 8         /* rows of items in a group; a divisor of SIDE */
#endif
#ifndef PAD
#define PAD 0          /* elements added to each row of the block in local memory */
#endif
#if SIDE % DOWN
#error "DOWN must divide SIDE"
#endif

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void transpose(__global const REAL *restrict in, __global REAL *restrict out, const int rows, const int columns)
{
    __local REAL block[SIDE][SIDE + PAD];
    const int left = get_group_id(0) * SIDE, top = get_group_id(1) * SIDE, x = get_local_id(0);
    for (int y = get_local_id(1); y < SIDE; y += DOWN)
        if (top + y < rows && left + x < columns)
            block[y][x] = in[(size_t)(top + y) * columns + left + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = get_local_id(1); y < SIDE; y += DOWN)
        if (left + y < columns && top + x < rows)
            out[(size_t)(left + y) * rows + top + x] = block[x][y];
}
