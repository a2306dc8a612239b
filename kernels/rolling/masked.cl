/* masked.cl - the pairs with a NaN in chunks of windows (rolling.clh): each on the rows that both columns have.
 *
 *   answer as in windows.cl, over what that wrote there, for the chunks list[offset + g]; a pair without a NaN keeps what
 *   windows.cl wrote, so that it has the same bits as its mirror, whatever columns lie beside it
 *
 * The same walk with six sums a pair, over the rows where both are present: z_i z_j, rows, z_i, z_j, z_i^2, z_j^2. A value
 * that is missing counts as 0 on both sides; rows without a value of column i are passed over. What is to be trusted is
 * decided pair by pair.
 *
 * One item one row of the matrices and VECTORS * LANES columns, for all windows of a chunk.
 */
#ifndef VECTORS
#define VECTORS 1
#endif
#ifndef PACKED
#define PACKED 0
#endif

/* of one vector of pairs */
typedef struct {
    LANE product, count, left, right, left_square, right_square;
} Sums;

static inline __attribute__((always_inline)) void
add_row(__global const SUM *row, const int i, const int at[VECTORS], const SUM from_i, const LANE from[VECTORS],
        Sums sums[VECTORS])
{
    const SUM value = row[i];
    if (value != value)
        return;
    const LANE zero = (LANE)(0), one = (LANE)(1), all = (LANE)(value - from_i);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const LANE other = *(__global const LOOSE *)(row + at[v]);
        const LANE right = other == other ? other - from[v] : zero;
        const LANE left = other == other ? all : zero;
        sums[v].product = left * right + sums[v].product;
        sums[v].count += other == other ? one : zero;
        sums[v].left += left;
        sums[v].right += right;
        sums[v].left_square = left * left + sums[v].left_square;
        sums[v].right_square = right * right + sums[v].right_square;
    }
}

static inline __attribute__((always_inline)) void clear(Sums sums[VECTORS])
{
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        sums[v].product = sums[v].count = sums[v].left = sums[v].right = (LANE)(0);
        sums[v].left_square = sums[v].right_square = (LANE)(0);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void masked(__global const SUM *restrict x, __global const int2 *restrict windows, __global const int2 *restrict chunks,
            __global const int *restrict list, __global const int *restrict left, __global const SUM *restrict origin,
            __global const uchar *restrict holes, __global REAL *restrict answer, const int columns, const int rows,
            const int offset, const int first, const int begin, const int end, const int ddof, const int min_periods)
{
    const int number = list[offset + get_group_id(2)], g = number - first, out = get_group_id(1), i = left[out];
    const int2 chunk = chunks[number];
    const int top = windows[chunk.x + chunk.y - 1].x, bottom = windows[chunk.x].y;
    const SUM from_i = origin[(size_t)g * columns + i];
    int at[VECTORS];
    LANE from[VECTORS];
    Sums sums[VECTORS], heads[CHUNK][VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        at[v] = min((int)(get_group_id(0) * VECTORS + v) * LANES, columns - LANES);
        from[v] = *(__global const LOOSE *)(origin + (size_t)g * columns + at[v]);
    }
    __global const uchar *mine = holes + (size_t)g * columns;
    const bool hole = mine[i] & HOLE;
    bool whole = !hole, all_holes[VECTORS];
    for (int j = at[0]; j < at[VECTORS - 1] + LANES; j++)
        whole &= !(mine[j] & HOLE);
    for (int v = 0; v < VECTORS; v++) {
        all_holes[v] = true;
        for (int j = at[v]; j < at[v] + LANES; j++)
            all_holes[v] &= hole || (mine[j] & HOLE);
    }
    if (whole || (PACKED && at[VECTORS - 1] + LANES <= i))
        return;

    clear(sums);
    for (int r = top; r <= bottom; r++)
        add_row(x + (size_t)r * columns, i, at, from_i, from, sums);
    for (int k = chunk.y - 1, r = top; k >= 0; k--) {
        const int edge = windows[chunk.x + k].x;
        while (r > edge) {
            r--;
            add_row(x + (size_t)r * columns, i, at, from_i, from, sums);
        }
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            heads[k][v] = sums[v];
    }
    clear(sums);
    /* rows that an answer needs, see `enough` */
    const int least = max(max(min_periods, 1), COVARIANCE ? ddof + 1 : 1);
    const size_t size = PACKED ? (size_t)columns * (columns + 1) / 2 : (size_t)rows * columns;
    const size_t row = PACKED ? (size_t)out * (2 * columns - out - 1) / 2 : (size_t)out * columns;
    const int stop = min(chunk.x + chunk.y, end);
    for (int w = chunk.x, r = bottom; w < stop; w++) {
        const int2 span = windows[w];
        while (r < span.y) {
            r++;
            add_row(x + (size_t)r * columns, i, at, from_i, from, sums);
        }
        if (w < begin)
            continue;
        __global REAL *to = answer + (size_t)(w - begin) * size + row;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const Sums *head = &heads[w - chunk.x][v];
            const LANE count = head->count + sums[v].count, share = (LANE)(1) / count;
            const LANE A_i = head->left + sums[v].left, A_j = head->right + sums[v].right;
            const LANE Q_i = head->left_square + sums[v].left_square, Q_j = head->right_square + sums[v].right_square;
            const LANE V_i = Q_i - A_i * A_i * share, V_j = Q_j - A_j * A_j * share;
            const LANE C = head->product + sums[v].product - A_i * A_j * share;
            if (!PACKED || i <= at[v]) {
                /* all lanes at once where there is nothing to be careful about, and no diagonal */
                LANE fine = count >= (LANE)(least) ? (LANE)(1) : (LANE)(0);
                fine = V_i >= Q_i * (LANE)(SHARE) && V_j >= Q_j * (LANE)(SHARE) ? fine : (LANE)(0);
                fine = V_i > (LANE)(SMALL) && V_j > (LANE)(SMALL) ? fine : (LANE)(0);
                fine = V_i < (LANE)(LARGE) && V_j < (LANE)(LARGE) ? fine : (LANE)(0);
                const SUM *each = (const SUM *)&fine;
                SUM number = 0;
                for (int lane = 0; lane < LANES; lane++)
                    number += each[lane];
                if (number == LANES && !(at[v] <= i && i < at[v] + LANES)) {
#if CORRELATION
                    LANE root = V_i * V_j;
                    SUM *roots = (SUM *)&root;
#pragma unroll
                    for (int lane = 0; lane < LANES; lane++)
                        roots[lane] = sqrt(roots[lane]);
                    LANE value = C / root;
                    value = value > (LANE)(NEAR) ? (LANE)(1) : value;
                    value = value < (LANE)(-NEAR) ? (LANE)(-1) : value;
#elif BETA
                    const LANE value = C / V_i;
#else
                    const LANE value = C / (count - (LANE)(ddof));
#endif
                    if (all_holes[v])
                        store(to + at[v], value, 0);
                    else {
                        const SUM *found = (const SUM *)&value;
                        for (int lane = 0; lane < LANES; lane++)
                            if (mine[at[v] + lane] & HOLE)
                                to[at[v] + lane] = found[lane];
                    }
                    continue;
                }
            }
            const SUM *n = (const SUM *)&count, *c = (const SUM *)&C;
            const SUM *v_i = (const SUM *)&V_i, *v_j = (const SUM *)&V_j, *q_i = (const SUM *)&Q_i, *q_j = (const SUM *)&Q_j;
            for (int lane = PACKED ? max(i - at[v], 0) : 0; lane < LANES; lane++) {
                const int j = at[v] + lane;
                if (!hole && !(mine[j] & HOLE))
                    continue;
                SUM value = UNDEFINED;
                if (enough(n[lane], ddof, min_periods)) {
                    /* no squares and no value near by: all values are the origin */
                    const bool still_i = q_i[lane] == 0 && !(mine[i] & NEARBY);
                    const bool still_j = q_j[lane] == 0 && !(mine[j] & NEARBY);
                    if (!(still_i || sound(v_i[lane], q_i[lane])) || !(still_j || sound(v_j[lane], q_j[lane]))) {
                        value = careful(x, columns, span, i, j, ddof, min_periods);
                    } else {
#if CORRELATION
                        if (!still_i && !still_j)
                            value = i == j ? 1 : clipped(c[lane] / root_of(v_i[lane], v_j[lane]));
#elif BETA
                        if (!still_i)
                            value = i == j ? 1 : c[lane] / v_i[lane];
#else
                        value = c[lane] / (n[lane] - ddof);
#endif
                    }
                }
                to[j] = value;
            }
        }
    }
}
