/* columns.cl - what one row does to each column, for histories without missing values (shared.cl does the pairs).
 *
 *   source[(o + t) * stride + j]   row t < count of the slab, o = first; NaN where the value is infinite
 *   state[k * stride + j]          mean, its rest, sigma, total weight, spread, norm (k = 0 .. 5), carried from slab to slab
 *   a, b, p, q[t * stride + j]     written for every t and j < stride
 *
 * `before` rows came before those of the slab. A row multiplies all weights so far by factor[o + t]. Let g and u be the
 * shares of the rows before it and of itself in the new total weight, g + u = 1, and d its deviation from the mean before it.
 * Then
 *   mean' = mean + u d,   sigma' = hypot(sqrt(g) sigma, sqrt(g u) d),   a = sqrt(g) sigma / sigma',   b = sqrt(g u) d / sigma'
 * so that a correlation goes on as R' = a_i a_j R + b_i b_j. Nothing is squared, so no magnitude overflows; sigma is 0 until
 * the first value that differs; the mean is a pair of REAL, so that a level costs no digits. p and q turn a correlation into
 * what is wanted: R p_i p_j, or R p_j q_i for a beta; NaN where it is not defined. Spread is 1 less the sum of the squared
 * shares of all rows: what an unbiased covariance is divided by. a^2 + b^2 is 1 but for rounding, which adds up over the rows;
 * norm, the correlation of a column with itself by the same recurrence, has what it adds up to, and p and q take it out.
 *
 * One work-item LANES neighbouring columns; the columns of a row are independent, rows follow each other.
 */
#ifndef LANES
#define LANES 4         /* columns of a work-item */
#endif
#ifndef GROUP
#define GROUP 1         /* work-items of a group */
#endif
#ifndef STATISTIC
#define STATISTIC 0     /* 0 covariance, 1 correlation, 2 beta */
#endif
#ifndef ADJUST
#define ADJUST 1        /* 0: the total weight is made 1 after each row */
#endif
#ifndef COUNTED
#define COUNTED 0       /* 1: a variance is divided by rows - ddof; 0: by all (ddof 0) or without bias (ddof 1) */
#endif
#if REAL_BITS == 64
#define SMALLEST 0x1p-1022
#else
#define SMALLEST 0x1p-126f
#endif
#if LANES * REAL_BITS > 256
#error "LANES of REAL must fit 256 bits: PoCL 3.0 has a wrong root of longer vectors"
#endif
#if LANES == 1
#define LANE REAL
#else
#define LANE JOIN(REAL, LANES)
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void columns(__global const REAL *restrict source, __global const REAL *restrict factor, __global REAL *restrict state,
             __global REAL *restrict a, __global REAL *restrict b, __global REAL *restrict p, __global REAL *restrict q,
             const int stride, const int first, const int count, const int before, const REAL weight, const int ddof,
             const int min_periods)
{
    const int j = get_global_id(0) * LANES;
    if (j >= stride)
        return;
    const REAL none = (REAL)NAN;
    __global LANE *kept = (__global LANE *)(state + j);
    const int plane = stride / LANES;
    LANE mean = kept[0], rest = kept[plane], sigma = kept[2 * plane];
    LANE norm = before + first > 0 ? kept[5 * plane] : (LANE)(1);
    REAL total = state[3 * stride + j], spread = state[4 * stride + j];

    for (int t = 0; t < count; t++) {
        const LANE x = *(__global const LANE *)(source + (size_t)(first + t) * stride + j);
        const size_t at = (size_t)t * stride + j;
        const REAL faded = total * factor[first + t], sum = faded + weight;
        const REAL g = faded / sum, u = weight / sum;
        const REAL left = sqrt(g), right = sqrt(g * u);
        total = ADJUST ? sum : (REAL)1;
        spread = g * g * spread + 2 * g * u;

        const LANE d = (x - mean) - rest;
        LANE base = mean, moved = u * d;
        if (u > g) {
            /* from the value, so that a mean of heavy rows forgets what it was before */
            base = x;
            moved = -g * d;
            rest = (LANE)(0);
        }
        const LANE rough = base + moved, taken = rough - base;
        const LANE lost = ((base - (rough - taken)) + (moved - taken)) + rest;
        mean = rough + lost;
        const LANE part = mean - rough;
        rest = (rough - (mean - part)) + (lost - part);

        const LANE old = left * sigma, fresh = right * d, size = fresh < 0 ? -fresh : fresh;
        const LANE larger = old > size ? old : size, smaller = old > size ? size : old;
        const LANE ratio = larger > 0 ? smaller / larger : (LANE)(0);
        const LANE now = larger * sqrt(1 + ratio * ratio);
        const LANE before_it = now == 0 ? (LANE)(1) : old / now, itself = now == 0 ? (LANE)(0) : fresh / now;
        *(__global LANE *)(a + at) = before_it;
        *(__global LANE *)(b + at) = itself;
        norm = (before_it * before_it) * norm + itself * itself;
        const LANE root = sqrt(norm);
        /* what was not 0 stays so while its rows have a weight, however long the column rests */
        const LANE floor = g > 0 && sum > 0 ? (LANE)(SMALLEST) : (LANE)(0);
        sigma = (sigma > 0 || now > 0) && now < floor ? floor : now;

        const int rows = before + t + 1;
        const bool few = rows < min_periods;
#if STATISTIC == 0
        REAL scale = none;
        if (COUNTED) {
            if (rows > ddof)
                scale = sqrt((REAL)rows / (REAL)(rows - ddof));
        } else if (ddof == 0)
            scale = 1;
        else if (spread > 0)
            scale = sqrt(1 / spread);
        *(__global LANE *)(p + at) = sigma * (few ? none : scale) / root;
#elif STATISTIC == 1
        *(__global LANE *)(p + at) = few || !(sigma > 0) ? (LANE)(none) : 1 / root;
#else
        *(__global LANE *)(p + at) = sigma / root;
        *(__global LANE *)(q + at) = few || !(sigma > 0) ? (LANE)(none) : 1 / sigma / root;
#endif
    }
    kept[0] = mean;
    kept[plane] = rest;
    kept[2 * plane] = sigma;
    kept[5 * plane] = norm;
    for (int k = 0; k < LANES; k++) {
        state[3 * stride + j + k] = total;
        state[4 * stride + j + k] = spread;
    }
}
