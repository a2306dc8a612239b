/* columns.cl - what the pairs of a window need to know of each column alone, where no NaN is (rolling.clh).
 *
 * With A the sum of z = x - origin over the window, Q that of its squares, V = Q - A^2 / n:
 *   part[(w - base) * columns + c]   = A / sqrt(n), so that C = S - part_i * part_j; NaN where every answer is NaN: an inf in
 *                                      the window, or too few rows
 *   factor[(w - base) * columns + c] = 1 / sqrt(V) for a correlation, 1 / V for a beta; NaN where the column is constant
 *   doubt[(w - base) * columns + c]  = 1 where V is not to be trusted
 *   doubts[g * get_num_groups(0) + v]  = whether there is such a one among the columns of group v
 *
 * Of a column with a NaN in the chunk, only holes is right, and there is no doubt: masked.cl does its pairs.
 * The smallest and the largest value go the same way as the sums, and tell a constant by equality.
 * One item LANES columns of a chunk.
 */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void columns(__global const SUM *restrict x, __global const int2 *restrict windows, __global const int2 *restrict chunks,
             __global const SUM *restrict origin, __global SUM *restrict part, __global SUM *restrict factor,
             __global uchar *restrict doubt, __global int *restrict doubts, __global uchar *restrict holes,
             const int columns, const int first, const int base, const int gaps, const int ddof, const int min_periods)
{
    const int2 chunk = chunks[first + get_group_id(1)];
    const int at = min((int)get_group_id(0) * LANES, columns - LANES);
    const int top = windows[chunk.x + chunk.y - 1].x, bottom = windows[chunk.x].y;
    const LANE from = *(__global const LOOSE *)(origin + (size_t)get_group_id(1) * columns + at);
    __global const SUM *column = x + at;
    LANE heads[CHUNK][4], hole = (LANE)(0), nearby = (LANE)(0);
    if (gaps)
        for (int r = windows[chunk.x].x; r <= windows[chunk.x + chunk.y - 1].y; r++) {
            const LANE value = *(__global const LOOSE *)(column + (size_t)r * columns);
            const LANE z = value - from;
            hole = value == value ? hole : (LANE)(1);
            nearby = z != (LANE)(0) && z > (LANE)(-SMALL) && z < (LANE)(SMALL) ? (LANE)(1) : nearby;
        }
    const SUM *hollow = (const SUM *)&hole, *close = (const SUM *)&nearby;
    for (int lane = 0; lane < LANES; lane++)
        holes[(size_t)get_group_id(1) * columns + at + lane] =
            (hollow[lane] != 0 ? HOLE : 0) | (close[lane] != 0 ? NEARBY : 0);

    LANE A = (LANE)(0), Q = (LANE)(0), low = (LANE)(INFINITY), high = (LANE)(-INFINITY);

#define ADD(row)                                                                      \
    do {                                                                              \
        const LANE value = *(__global const LOOSE *)(column + (size_t)(row) * columns); \
        const LANE z = value - from;                                                  \
        A += z;                                                                       \
        Q = z * z + Q;                                                                \
        low = value < low ? value : low;                                              \
        high = value > high ? value : high;                                           \
    } while (0)

    for (int r = top; r <= bottom; r++)
        ADD(r);
    for (int k = chunk.y - 1, r = top; k >= 0; k--) {
        const int begin = windows[chunk.x + k].x;
        while (r > begin)
            ADD(--r);
        heads[k][0] = A;
        heads[k][1] = Q;
        heads[k][2] = low;
        heads[k][3] = high;
    }
    A = Q = (LANE)(0);
    low = (LANE)(INFINITY);
    high = (LANE)(-INFINITY);
    int any = 0;
    for (int k = 0, r = bottom; k < chunk.y; k++) {
        const int2 rows = windows[chunk.x + k];
        while (r < rows.y)
            ADD(++r);
        const SUM n = rows.y - rows.x + 1, root = 1 / sqrt(n);
        const LANE sum = heads[k][0] + A, square = heads[k][1] + Q, about = square - sum * sum / n;
        const LANE smallest = heads[k][2] < low ? heads[k][2] : low, largest = heads[k][3] > high ? heads[k][3] : high;
        const SUM *sums = (const SUM *)&sum, *squares = (const SUM *)&square, *V = (const SUM *)&about;
        const SUM *lows = (const SUM *)&smallest, *highs = (const SUM *)&largest;
        const size_t to = (size_t)(chunk.x + k - base) * columns + at;
        const bool answered = enough(n, ddof, min_periods);
        for (int lane = 0; lane < LANES; lane++) {
            const bool usable = answered && lows[lane] != -INFINITY && highs[lane] != INFINITY;
            const bool still = lows[lane] == highs[lane];
            const bool doubtful = usable && !still && hollow[lane] == 0 && !sound(V[lane], squares[lane]);
            part[to + lane] = usable ? sums[lane] * root : UNDEFINED;
#if CORRELATION
            factor[to + lane] = usable && !still ? 1 / sqrt(V[lane]) : UNDEFINED;
#elif BETA
            factor[to + lane] = usable && !still ? 1 / V[lane] : UNDEFINED;
#endif
            doubt[to + lane] = doubtful;
            any |= doubtful;
        }
    }
    doubts[get_group_id(1) * get_num_groups(0) + get_group_id(0)] = any;
}
