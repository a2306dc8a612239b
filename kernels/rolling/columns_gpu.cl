/* columns_gpu.cl - what the pairs of a window need to know of each column alone (rolling.clh, rolling_gpu.clh).
 *
 * x has `stride` columns, a multiple of COLUMNS; those that do not exist are 0. For chunk from + g, its window k and column
 * c, at w = (g * WINDOWS + k) * stride + c, with z = (x - origin[g * stride + c]) * scale[g * stride + c] summed over it:
 *
 *   part[w]           A / sqrt(n), so that C = S - part_i * part_j
 *   left[w], right[w] what C is multiplied with where c is the column of a line of the answer, or of a column of it
 *
 * They are NaN where the answer is, and part and one factor are 0 where a constant makes it exactly 0; of a correlation both
 * are the same, and only left is written. The origin is the mean of the core, or of some of its rows; the scale, written where
 * products are taken in a narrower type than SUM, a power of two.
 *
 * A column with a missing value, an infinity, or a variance not to be trusted in any window of a chunk gets a mark, and an
 * entry g * stride + c in `special`, whose length is lengths[turn]; the other length is cleared for the next launch. So does
 * one whose values mostly repeat, where products are taken in a narrower type than SUM.
 *
 * One item a column, one group COLUMNS of them in a chunk. Whether a column is constant is asked where its variance is lost,
 * and seen by comparing its values.
 */
#ifndef COLUMNS
#define COLUMNS 64
#endif

#ifndef SAMPLES
#define SAMPLES 8
#endif

typedef struct {
    SUM total, squares;
} Column;

static inline void add_value(Column *to, const SUM z)
{
    to->total += z;
    to->squares = z * z + to->squares;
}

static inline bool unchanging(__global const SUM *column, const int stride, const int first, const int last)
{
    const SUM value = column[(size_t)first * stride];
    bool same = value - value == 0;
#pragma unroll 8
    for (int row = first + 1; row <= last; row++)
        same &= column[(size_t)row * stride] == value;
    return same;
}

#define ADD_HALF(to, from, side, at, size) \
    do { \
        const int end_ = HALF_END(side, at, size); \
        (to) = (from); \
        for (int slot_ = HALF_BEGIN(side, at, size); slot_ < end_; slot_++) \
            add_value(&(to), mine[slot_ * COLUMNS]); \
    } while (0)

__kernel __attribute__((reqd_work_group_size(COLUMNS, 1, 1)))
void columns_gpu(__global const SUM *restrict x, __global const int *restrict chunks, __global SUM *restrict origin,
                 __global SUM *restrict scale, __global TERM *restrict part, __global TERM *restrict left,
                 __global TERM *restrict right, __global uchar *restrict marks, __global int *restrict special,
                 __global int *restrict lengths, const int stride, const int columns, const int from, const int turn,
                 const int ddof, const int min_periods)
{
    const int c = get_global_id(0), g = get_group_id(1);
    __global const int *const table = chunks + (size_t)(from + g) * CHUNK_NUMBERS;
    __global const int *const firsts = FIRSTS(table), *const lasts = LASTS(table);
    OPEN_CHUNK(table);
    const int end = last + tails;
    __global const SUM *const column = x + c;
    int marked = 0, rows = 0;
    SUM root = 0;

    if (c == 0 && g == 0)
        lengths[1 - turn] = 0;

    /* the mean of the core, or of a few rows of it; of no core, or where one is missing, a value of the chunk that is a number */
    const int core = last + 1 - first - heads;
    const int samples = SCALED ? core : min(core, SAMPLES);
    SUM middle = 0, before = UNDEFINED;
    bool even = true;
    int repeats = 0;
#pragma unroll 8
    for (int n = 0; n < samples; n++) {
        const SUM value = column[(size_t)(first + heads + (SCALED ? n : core * n / samples)) * stride];
        even &= value == column[(size_t)(first + heads) * stride];
        repeats += value == before;
        before = value;
        middle += value;
    }
#if SCALED
    /* equal products are all rounded alike when they are added up in float, so that roundings do not cancel */
    marked = !even && 2 * repeats > samples;
#endif
    /* a mean may round away from a constant */
    middle = even && samples > 0 ? column[(size_t)(first + heads) * stride] : middle / samples;
    for (int row = first; row <= end && !(middle - middle == 0); row++)
        middle = column[(size_t)row * stride];
    if (!(middle - middle == 0))
        middle = 0;
    origin[(size_t)g * stride + c] = middle;

    /* the rows outside the core, each item's for itself */
    __local SUM z[SLOTS][COLUMNS];
    __local SUM *const mine = &z[0][get_local_id(0)];
#pragma unroll
    for (int slot = 0; slot < SLOTS; slot++)
        if (slot < heads + tails)
            mine[slot * COLUMNS] = column[(size_t)SLOT_ROW(slot) * stride] - middle;
    Column all = {0, 0}, eight, four, two, one;
#pragma unroll 8
    for (int row = first + heads; row <= last; row++)
        add_value(&all, column[(size_t)row * stride] - middle);
    SUM unit = 1;
#if SCALED
    Column whole = all;
    for (int slot = 0; slot < heads + tails; slot++)
        add_value(&whole, mine[slot * COLUMNS]);
    /* what is not finite, or near the ends of the range, gets a mark for the variance that it makes */
    if (whole.squares > TINY && whole.squares < HUGE)
        unit = ldexp((SUM)1, -(ilogb(whole.squares) / 2));
    scale[(size_t)g * stride + c] = unit;
#endif

#pragma unroll 1
    for (int s8 = 0; s8 < 2; s8++) {
        ADD_HALF(eight, all, s8, 0, 16);
#pragma unroll 1
        for (int s4 = 0; s4 < 2; s4++) {
            ADD_HALF(four, eight, s4, s8 * 8, 8);
#pragma unroll 1
            for (int s2 = 0; s2 < 2; s2++) {
                ADD_HALF(two, four, s2, s8 * 8 + s4 * 4, 4);
#pragma unroll 1
                for (int s1 = 0; s1 < 2; s1++) {
                    ADD_HALF(one, two, s1, s8 * 8 + s4 * 4 + s2 * 2, 2);
                    const int k = s8 * 8 + s4 * 4 + s2 * 2 + s1, n = last - first + 1 + lasts[k] - firsts[k];
                    const size_t w = ((size_t)g * WINDOWS + k) * stride + c;
                    if (n != rows) {
                        rows = n;
                        root = 1 / sqrt((SUM)n);
                    }
                    const SUM A = one.total * root * unit, Q = one.squares * unit * unit, V = Q - A * A;
                    SUM p = 0, l = UNDEFINED, r = UNDEFINED;
                    if (n < max(min_periods, 1) || n <= (COVARIANCE ? ddof : 0)) {
                        /* undefined for every pair */
                    } else if (!TRUSTED(V, Q)) {
                        if (k >= table[1] || c >= columns) {
                            /* there is none */
                        } else if (Q - Q == 0 && unchanging(column, stride, first + firsts[k], last + lasts[k])) {
                            r = CORRELATION ? UNDEFINED : 0;
                            l = COVARIANCE ? 0 : UNDEFINED;
                        } else {
                            marked = 1;
                        }
                    } else {
                        p = A;
                        l = CORRELATION ? rsqrt(V) : BETA ? 1 / V : (SUM)1 / (n - ddof);
                        r = 1;
                    }
                    part[w] = p;
                    left[w] = l;
#if !CORRELATION
                    right[w] = r;
#endif
                }
            }
        }
    }
    marks[(size_t)g * stride + c] = marked;
    if (marked)
        special[atomic_inc(lengths + turn)] = g * stride + c;
}
