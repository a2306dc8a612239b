/* gap_lists.cl - lists of the rows that columns miss or have, as gaps.clh describes them, of what presence.cl says.
 *
 *   lists[l] = (column, have, lead, place)
 *
 * List l names the rows that the column has if `have` is 1, and else those that it misses, without the first `lead` rows of
 * the matrix; the quads of its block begin at `place`. Rows of the slab are `first` to first + rows - 1 of the matrix.
 *
 * One group of ACROSS x DOWN items does a block: neighbours read neighbouring words of bits, and tiles are shared out. First
 * it counts the quads of all, then it lays them out, then it writes them.
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#define EACH ((BLOCK + ACROSS - 1) / ACROSS)
#define QUAD(four) (ushort4)((ushort)(four), (ushort)((four) >> 16), (ushort)((four) >> 32), (ushort)((four) >> 48))

/* The rows that a list names of the 32 from `row` on, one bit each; none behind `end`. */
static inline uint named(__global const uint *bits, const int4 list, const int columns, const int row, const int end)
{
    const int shift = row % 32, left = end - row, led = list.z - row;
    __global const uint *word = bits + (size_t)(row / 32) * columns + list.x;
    uint found = word[0] >> shift;
    if (shift && left > 32 - shift)
        found |= word[columns] << (32 - shift);
    if (!list.y)
        found = ~found;
    if (left < 32)
        found &= (1u << left) - 1;
    return led <= 0 ? found : led >= 32 ? 0 : found & ~0u << led;
}

__kernel __attribute__((reqd_work_group_size(ACROSS, DOWN, 1)))
void gap_lists(__global const uint *restrict bits, __global const int4 *restrict lists, __global int *edges,
               __global ushort4 *restrict quads, const int columns, const int count, const int first, const int rows)
{
    __local int sums[DOWN][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), begin = get_group_id(0) * BLOCK;
    const int tiles = (rows + TALL - 1) / TALL, end = first + rows, place = lists[begin].w;
    const int mine = x * EACH, last = min(mine + EACH, BLOCK);
    __global int *edge = edges + (size_t)get_group_id(0) * tiles * (BLOCK + 1);

    /* how many quads of the same tile come before those of a list, and how many a tile has in all */
    for (int round = 0; round < tiles; round += DOWN) {
        const int t = round + y;
        int before = 0;
        if (t < tiles)
            for (int n = mine; n < last; n++) {
                int some = 0;
                if (begin + n < count)
                    for (int row = first + t * TALL; row < min(first + (t + 1) * TALL, end); row += 32)
                        some += popcount(named(bits, lists[begin + n], columns, row, end));
                edge[t * (BLOCK + 1) + n] = before;
                before += (some + 3) / 4;
            }
        sums[y][x] = before;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < tiles) {
            before = 0;
            for (int i = 0; i < x; i++)
                before += sums[y][i];
            for (int n = mine; n < last; n++)
                edge[t * (BLOCK + 1) + n] += before;
            if (x == ACROSS - 1)
                edge[t * (BLOCK + 1) + BLOCK] = before + sums[y][x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    /* where a tile ends, then where each list begins */
    if (x == 0 && y == 0)
        for (int t = 0, at = place; t < tiles; t++) {
            at += edge[t * (BLOCK + 1) + BLOCK];
            edge[t * (BLOCK + 1) + BLOCK] = at;
        }
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int t = y; t < tiles; t += DOWN) {
        const int top = t == 0 ? place : edge[t * (BLOCK + 1) - 1];
        for (int n = x; n < BLOCK; n += ACROSS)
            edge[t * (BLOCK + 1) + n] += top;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int n = x; n < min(BLOCK, count - begin); n += ACROSS)
        for (int t = y; t < tiles; t += DOWN) {
            const int top = first + t * TALL;
            __global ushort4 *out = quads + edge[t * (BLOCK + 1) + n];
            ulong four = 0;
            int some = 0;
            for (int row = top; row < min(top + TALL, end); row += 32)
                for (uint rest = named(bits, lists[begin + n], columns, row, end); rest; rest &= rest - 1) {
                    four |= (ulong)(row - top + 31 - (int)clz(rest & -rest)) << 16 * some;
                    if (++some == 4) {
                        *out++ = QUAD(four);
                        four = 0;
                        some = 0;
                    }
                }
            if (some) {
                for (; some < 4; some++)
                    four |= (ulong)TALL << 16 * some;
                *out = QUAD(four);
            }
        }
}
