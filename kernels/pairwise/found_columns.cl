/* found_columns.cl - what is known of each column of a matrix, from what gap_columns.cl says of its chunks of rows.
 *
 *   found[s * columns + j], s = 0 .. 4, as parts there have it, of all chunks: of their sums and rows the sum, of the others the
 *                           smallest, but of the largest values the largest
 *
 * One group of ACROSS x DOWN items does ACROSS columns, an item every DOWN'th chunk.
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#define FACTS 5

static inline void add(SUM *to, const SUM *from)
{
    to[0] += from[0];
    to[1] = min(to[1], from[1]);
    to[2] = max(to[2], from[2]);
    to[3] += from[3];
    to[4] = min(to[4], from[4]);
}

__kernel __attribute__((reqd_work_group_size(ACROSS, DOWN, 1)))
void found_columns(__global const SUM *restrict parts, __global SUM *restrict found, const int columns, const int chunks)
{
    __local SUM all[DOWN][FACTS][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), j = get_group_id(0) * ACROSS + x;
    SUM some[FACTS] = {0, INFINITY, -INFINITY, 0, INFINITY}, one[FACTS];

    if (j < columns)
        for (int g = y; g < chunks; g += DOWN) {
            for (int s = 0; s < FACTS; s++)
                one[s] = parts[((size_t)g * FACTS + s) * columns + j];
            add(some, one);
        }
    for (int s = 0; s < FACTS; s++)
        all[y][s][x] = some[s];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y > 0 || j >= columns)
        return;
    for (int i = 1; i < DOWN; i++) {
        for (int s = 0; s < FACTS; s++)
            one[s] = all[i][s][x];
        add(some, one);
    }
    for (int s = 0; s < FACTS; s++)
        found[s * columns + j] = some[s];
}
