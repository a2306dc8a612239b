/* floors.cl - of each column the cap that leaves most of its squares where `gaps` rows are taken from it.
 *
 *   floors[j] = the sum of min(z^2, cap) over all rows that column j has, for that cap      floors[columns + j] = the cap
 *
 * of the sums that capped_squares.cl leaves, less LOSS of them, which is more than their roundings. One group of ACROSS x
 * LEVELS items does ACROSS columns; an item adds up the chunks of one cap.
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef LEVELS
#define LEVELS 6
#endif
#define CAP(l) ((SUM)1 / (16 << 4 * (l)))
#define LOSS ((SUM)1 / 1024)

__kernel __attribute__((reqd_work_group_size(ACROSS, LEVELS, 1)))
void floors_of(__global const REAL *restrict sums, __global REAL *restrict floors, const int columns, const int chunks,
               const int gaps)
{
    __local SUM totals[LEVELS][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), j = get_group_id(0) * ACROSS + x;
    SUM total = 0, best = 0, cap = 0, left = -INFINITY;

    if (j < columns)
#pragma unroll 8
        for (int c = 0; c < chunks; c++)
            total += sums[((size_t)c * LEVELS + y) * columns + j];
    totals[y][x] = total - total * LOSS;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y > 0 || j >= columns)
        return;
    for (int l = 0; l < LEVELS; l++)
        if (totals[l][x] - gaps * CAP(l) > left) {
            best = totals[l][x];
            cap = CAP(l);
            left = best - gaps * cap;
        }
    floors[j] = best;
    floors[columns + j] = cap;
}
