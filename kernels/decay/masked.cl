/* masked.cl - expanding and exponentially weighted matrices where values are missing: each pair on its own rows.
 *
 *   source[t * stride + j]   the values: +infinity is a missing one, NaN one that is infinite
 *   state[(k * rows + r) * stride + j]   what pair (left[r], j) carries from block to block, k = 0 .. STATES - 1, see below
 *
 * A row that a pair has, with deviations d from its means, and the shares g of the rows before and u of itself in the new
 * total weight, makes mean' = mean + u d, V' = g V + g u d d, C' = g C + g u d_i d_j, and spread' = g g spread + 2 g u (1 less
 * the sum of the squared shares); for any other row g is 1, u and d are 0, and all stay as they are. Nothing is subtracted but
 * a mean, a pair of REAL, from a value; V is 0 until the first value that differs. Squares hold within 2^-500 .. 2^500: a pair
 * that leaves that range sets *doubtful, and the host does such a history with care.
 *
 * Matrices lie in out as those of shared.cl, and the work is shared out as there: rows bounds[g] to bounds[g + 1] for a
 * work-item of a CPU, LANES columns at a time; one element for one of a GPU (GROUP > 1). The state of a pair is loaded once
 * for TILE matrices. (i, j) and (j, i) take the same operations, so they are the same bits.
 */
#ifndef LANES
#define LANES WIDTH     /* columns that a work-item takes together; 1 on a GPU */
#endif
#ifndef GROUP
#define GROUP 1
#endif
#ifndef TILE
#define TILE 16         /* matrices between two visits of a pair's state to memory */
#endif
#ifndef STATISTIC
#define STATISTIC 0     /* 0 covariance, 1 correlation, 2 beta */
#endif
#ifndef PACKED
#define PACKED 0
#endif
#ifndef ADJUST
#define ADJUST 1        /* 0: the total weight is made 1 after each row */
#endif
#ifndef IGNORE_MISSING
#define IGNORE_MISSING 0 /* 1: a row that a pair does not have leaves its weights */
#endif
#ifndef COUNTED
#define COUNTED 0       /* 1: a variance is divided by rows - ddof; 0: by all (ddof 0) or without bias (ddof 1) */
#endif
#define STATES 10
#define RESULT SOURCE   /* the type of the answer goes by SOURCE_BITS */
#if REAL_BITS == 64
#define SMALL 0x1p-500
#define LARGE 0x1p+500
/* a correlation this near to 1 or -1, or beyond, is exactly that */
#define NEAR (1 - 0x1p-48)
#define WHOLE long
#else
#define SMALL 0x1p-60f
#define LARGE 0x1p+60f
#define NEAR (1 - 0x1p-19f)
#define WHOLE int
#endif
#if LANES == 1
#define LANE REAL
#define LOOSE REAL
#define MASK int
#else
#define LANE JOIN(REAL, LANES)
#define MASK JOIN(WHOLE, LANES)
typedef LANE LOOSE __attribute__((aligned(sizeof(REAL))));
#endif
#define ABSENT ((REAL)INFINITY)

static inline __attribute__((always_inline)) LANE roots(const LANE value)
{
#if LANES == 1
    return sqrt(value);
#else
    REAL part[LANES] __attribute__((aligned(sizeof(LANE))));
    *(LANE *)part = value;
#pragma unroll
    for (int k = 0; k < LANES; k++)
        part[k] = sqrt(part[k]);
    return *(LANE *)part;
#endif
}

static inline __attribute__((always_inline)) void
put(__global RESULT *at, const LANE value, const int lanes)
{
#if LANES == 1
    *at = (RESULT)value;
#else
    REAL part[LANES] __attribute__((aligned(sizeof(LANE))));
    *(LANE *)part = value;
    for (int k = 0; k < lanes; k++)
        at[k] = (RESULT)part[k];
#endif
}

/* d becomes the deviation of x from the mean, which takes x in: from the nearer of the two */
static inline __attribute__((always_inline)) LANE
deviation(const LANE x, const MASK seen, const LANE g, const LANE u, LANE *mean, LANE *rest)
{
    const LANE d = seen ? (x - *mean) - *rest : (LANE)(0);
    const MASK near = u > g;
    const LANE base = near ? x : *mean, moved = (near ? -g : u) * d;
    const LANE rough = base + moved, taken = rough - base;
    const LANE lost = ((base - (rough - taken)) + (moved - taken)) + (near ? (LANE)(0) : *rest);
    const LANE sum = rough + lost, part = sum - rough;
    *mean = sum;
    *rest = (rough - (sum - part)) + (lost - part);
    return d;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void masked_rows(__global const REAL *restrict source, __global const REAL *restrict factor,
                 __global REAL *restrict state, __global RESULT *restrict out, __global const int *restrict left,
                 __global const int *restrict bounds, __global int *restrict doubtful, const int columns,
                 const int rows, const int stride, const int count, const long cells, const long offset,
                 const REAL weight, const REAL ddof, const REAL min_periods)
{
    const LANE none = (LANE)((REAL)NAN), zero = (LANE)(0), one = (LANE)(1);
#if GROUP == 1
    const int begin = bounds[get_group_id(0)], end = bounds[get_group_id(0) + 1];
#else
    const int begin = get_group_id(1), end = begin + 1;
#endif
    const size_t plane = (size_t)rows * stride;
    for (int start = 0; start < count; start += TILE) {
        const int stop = min(count, start + TILE);
        for (int r = begin; r < end; r++) {
            const int i = left[r];
            const long row = PACKED ? (long)i * (2 * columns - i - 1) / 2 : (long)r * columns;
#if GROUP == 1
            for (int j = PACKED ? i : 0; j < columns; j += LANES) {
#else
            const int j = get_global_id(0);
            if (j < columns && j >= PACKED * i) {
#endif
                const int lanes = min(LANES, columns - j);
                __global REAL *kept = state + (size_t)r * stride + j;
                LANE held[STATES];
#pragma unroll
                for (int k = 0; k < STATES; k++)
                    held[k] = *(__global LOOSE *)(kept + k * plane);
                LANE total = held[0], spread = held[1], n = held[2], C = held[3], V_i = held[4], V_j = held[5];
                LANE mean_i = held[6], rest_i = held[7], mean_j = held[8], rest_j = held[9];
                MASK out_of_range = zero != zero;
                for (int t = start; t < stop; t++) {
                    __global const REAL *values = source + (size_t)t * stride;
                    const LANE x_i = (LANE)(values[i]), x_j = *(__global const LOOSE *)(values + j);
                    const MASK seen = (x_i != ABSENT) & (x_j != ABSENT);
                    LANE faded = total * factor[t];
#if IGNORE_MISSING
                    faded = seen ? faded : total;
#endif
                    const LANE sum = faded + weight, share = one / sum;
                    const LANE g = seen ? faded * share : one, u = seen ? weight * share : zero;
                    total = seen ? (ADJUST ? sum : one) : faded;
                    n = seen ? n + 1 : n;
                    spread = g * g * spread + 2 * g * u;
                    const LANE d_i = deviation(x_i, seen, g, u, &mean_i, &rest_i);
                    const LANE d_j = deviation(x_j, seen, g, u, &mean_j, &rest_j);
                    const LANE gu = g * u;
                    const LANE square_i = d_i * d_i, square_j = d_j * d_j;
                    V_i = g * V_i + gu * square_i;
                    V_j = g * V_j + gu * square_j;
                    C = g * C + gu * (d_i * d_j);
                    out_of_range |= ((V_i < SMALL) & ((V_i > 0) | ((d_i != 0) & (gu > 0)))) | (square_i > LARGE);
                    out_of_range |= ((V_j < SMALL) & ((V_j > 0) | ((d_j != 0) & (gu > 0)))) | (square_j > LARGE);
#if STATISTIC == 0
                    LANE value = C;
                    if (COUNTED)
                        value = n > ddof ? C * (n / (n - ddof)) : none;
                    else if (ddof > 0)
                        value = spread > 0 ? C / spread : none;
#elif STATISTIC == 1
                    LANE value = C / roots(V_i * V_j);
                    value = value > NEAR ? one : value < -NEAR ? -one : value;
#else
                    LANE value = C / V_i;
#endif
                    value = n < min_periods ? none : value;
                    __global RESULT *at = out + offset + t * cells + row;
                    put(at + j, value, lanes);
#if STATISTIC > 0
                    if (i >= j && i < j + lanes)
                        at[i] = at[i] == at[i] ? (RESULT)1 : at[i];
#endif
                }
                const LANE after[STATES] = {total, spread, n, C, V_i, V_j, mean_i, rest_i, mean_j, rest_j};
#pragma unroll
                for (int k = 0; k < STATES; k++)
                    *(__global LOOSE *)(kept + k * plane) = after[k];
#if LANES == 1
                if (out_of_range)
                    *doubtful = 1;
#else
                for (int k = 0; k < lanes; k++)
                    if (((WHOLE *)&out_of_range)[k])
                        *doubtful = 1;
#endif
            }
        }
    }
}
