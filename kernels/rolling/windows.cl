/* windows.cl - the matrices of chunks of windows (rolling.clh), whole rows of them at a time, for pairs without NaN.
 *
 *   answer[((w - begin) * rows + i) * columns + j] for begin <= w < end, i-th row = column left[i] against column j
 *   PACKED: the elements j >= i of each matrix, row by row
 *
 * from S, the sum of z_i z_j over the window, and what columns.cl found: C = S - part_i part_j, then the divisor of a
 * covariance, or the factors. An element and its mirror are the same operations on the same numbers, so their bits agree.
 *
 * One item ROWS rows of the matrices and VECTORS * LANES columns, for all windows of a chunk. The sums of the core and the
 * end of the head are kept for each window, CHUNK * ROWS * VECTORS vectors that stay in cache; then the tail is walked and
 * each window is written, in order of memory. Where columns are no whole vectors, the last ones overlap those before.
 */
#ifndef ROWS
#define ROWS 2
#endif
#ifndef VECTORS
#define VECTORS 2
#endif
#ifndef PACKED
#define PACKED 0
#endif

static inline __attribute__((always_inline)) void
add_row(__global const SUM *row, const int i[ROWS], const int at[VECTORS], const SUM from_i[ROWS],
        const LANE from[VECTORS], LANE sum[ROWS][VECTORS])
{
    SUM left[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        left[r] = row[i[r]] - from_i[r];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const LANE right = *(__global const LOOSE *)(row + at[v]) - from[v];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            sum[r][v] = left[r] * right + sum[r][v];
    }
}

/* whether every pair of the item has a NaN, so that masked.cl writes them all */
static inline bool all_holes(__global const uchar *holes, const int i[ROWS], const int begin, const int end)
{
    bool rows = true, columns = true;
    for (int r = 0; r < ROWS; r++)
        rows &= (holes[i[r]] & HOLE) != 0;
    for (int j = begin; j < end; j++)
        columns &= (holes[j] & HOLE) != 0;
    return rows || columns;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void windows(__global const SUM *restrict x, __global const int2 *restrict windows, __global const int2 *restrict chunks,
             __global const int *restrict left, __global const SUM *restrict origin, __global const SUM *restrict part,
             __global const SUM *restrict factor, __global const uchar *restrict doubt, __global const int *restrict doubts,
             __global const uchar *restrict holes, __global REAL *restrict answer, const int columns, const int rows,
             const int first, const int base, const int gaps, const int begin, const int end, const int ddof,
             const int min_periods)
{
    const int g = get_group_id(2), groups = (columns + LANES - 1) / LANES;
    const int2 chunk = chunks[first + g];
    const int top = windows[chunk.x + chunk.y - 1].x, bottom = windows[chunk.x].y;
    int at[VECTORS], i[ROWS], out[ROWS];
    SUM from_i[ROWS];
    LANE from[VECTORS], sum[ROWS][VECTORS], heads[CHUNK][ROWS][VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        at[v] = min((int)(get_group_id(0) * VECTORS + v) * LANES, columns - LANES);
        from[v] = *(__global const LOOSE *)(origin + (size_t)g * columns + at[v]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        out[r] = min((int)get_group_id(1) * ROWS + r, rows - 1);
        i[r] = left[out[r]];
        from_i[r] = origin[(size_t)g * columns + i[r]];
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = (LANE)(0);
    }
    const int leftmost = at[0], behind = at[VECTORS - 1] + LANES;
    if (PACKED && behind <= i[0])
        return;
    if (gaps && all_holes(holes + (size_t)g * columns, i, leftmost, behind))
        return;

    for (int r = top; r <= bottom; r++)
        add_row(x + (size_t)r * columns, i, at, from_i, from, sum);
    for (int k = chunk.y - 1, r = top; k >= 0; k--) {
        const int edge = windows[chunk.x + k].x;
        while (r > edge) {
            r--;
            add_row(x + (size_t)r * columns, i, at, from_i, from, sum);
        }
#pragma unroll
        for (int q = 0; q < ROWS; q++)
#pragma unroll
            for (int v = 0; v < VECTORS; v++)
                heads[k][q][v] = sum[q][v];
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            sum[r][v] = (LANE)(0);

    bool doubtful = false;
    for (int v = 0; v < groups; v++)
        doubtful |= doubts[g * groups + v] != 0;
    const size_t size = PACKED ? (size_t)columns * (columns + 1) / 2 : (size_t)rows * columns;
    const int stop = min(chunk.x + chunk.y, end);
    for (int w = chunk.x, r = bottom; w < stop; w++) {
        const int2 span = windows[w];
        while (r < span.y) {
            r++;
            add_row(x + (size_t)r * columns, i, at, from_i, from, sum);
        }
        if (w < begin)
            continue;
        __global const SUM *parts = part + (size_t)(w - base) * columns;
        __global const SUM *factors = factor + (size_t)(w - base) * columns;
        __global const uchar *unsure = doubt + (size_t)(w - base) * columns;
        const SUM divisor = span.y - span.x + 1 - ddof;
#pragma unroll
        for (int q = 0; q < ROWS; q++) {
            const size_t row = PACKED ? (size_t)out[q] * (2 * columns - out[q] - 1) / 2 : (size_t)out[q] * columns;
            __global REAL *to = answer + (size_t)(w - begin) * size + row;
            const SUM part_i = parts[i[q]];
#if !COVARIANCE
            const SUM factor_i = factors[i[q]];
#endif
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                LANE value = heads[w - chunk.x][q][v] + sum[q][v] - part_i * *(__global const LOOSE *)(parts + at[v]);
#if CORRELATION
                value *= factor_i * *(__global const LOOSE *)(factors + at[v]);
                value = value > (LANE)(NEAR) ? (LANE)(1) : value;
                value = value < (LANE)(-NEAR) ? (LANE)(-1) : value;
#elif BETA
                value *= factor_i;
#else
                value /= divisor;
#endif
                if (!PACKED)
                    store(to + at[v], value, 0);
                else if (at[v] + LANES > i[q])
                    store(to + at[v], value, i[q] - at[v]);
            }
#if !COVARIANCE
            if (leftmost <= i[q] && i[q] < behind)
                to[i[q]] = factor_i == factor_i ? 1 : UNDEFINED;
#endif
            if (doubtful)
                for (int j = PACKED ? max(leftmost, i[q]) : leftmost; j < behind; j++)
                    if (unsure[i[q]] || unsure[j])
                        to[j] = careful(x, columns, span, i[q], j, ddof, min_periods);
        }
    }
}
