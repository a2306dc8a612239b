/* origin.cl - the origin of each column in each chunk of windows (rolling.clh): the mean of what its core holds.
 *
 *   origin[g * columns + c] = mean of x[r, c] over the rows of the core where it is present; the value itself where all are
 *   equal; the first value of the chunk where the core has none; 0 where the chunk has none
 *
 * One item LANES columns of a chunk; where the columns are no multiple of LANES, the last lanes overlap those before.
 */
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void origin(__global const SUM *restrict x, __global const int2 *restrict windows, __global const int2 *restrict chunks,
            __global SUM *restrict target, const int columns, const int first)
{
    const int2 chunk = chunks[first + get_group_id(1)];
    const int at = min((int)get_group_id(0) * LANES, columns - LANES);
    const int top = windows[chunk.x + chunk.y - 1].x, bottom = windows[chunk.x].y;
    const LANE zero = (LANE)(0), one = (LANE)(1);
    LANE total = zero, count = zero, low = (LANE)(INFINITY), high = (LANE)(-INFINITY);
    for (int r = top; r <= bottom; r++) {
        const LANE value = *(__global const LOOSE *)(x + (size_t)r * columns + at);
        total += value == value ? value : zero;
        count += value == value ? one : zero;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    const SUM *totals = (const SUM *)&total, *counts = (const SUM *)&count;
    const SUM *lows = (const SUM *)&low, *highs = (const SUM *)&high;
    for (int lane = 0; lane < LANES; lane++) {
        SUM found = 0;
        if (counts[lane] == 0) {
            const int end = windows[chunk.x + chunk.y - 1].y;
            for (int r = windows[chunk.x].x; r <= end; r++) {
                const SUM value = x[(size_t)r * columns + at + lane];
                if (value == value) {
                    found = value;
                    break;
                }
            }
        } else {
            const SUM mean = totals[lane] / counts[lane];
            /* a mean may round away from a constant, and the sum of large numbers may overflow */
            found = lows[lane] == highs[lane] || !(mean - mean == 0) ? lows[lane] : mean;
        }
        target[(size_t)get_group_id(1) * columns + at + lane] = found;
    }
}
