/* masked_gpu.cl - the pairs of the columns that columns_gpu.cl listed, each on its rows (rolling.clh, rolling_gpu.clh).
 *
 *   answer as in pairs_gpu.cl, over what that wrote there; with fewer than min_periods rows in common NaN
 *
 * By the same halves, with six sums a pair: z_i z_j, rows, z_i, z_j, z_i^2, z_j^2 over the rows where both are present. What
 * is not to be trusted is done again by `careful`.
 *
 * Groups share the entries of `special`, a chunk and a column each. Those with get_group_id(1) = 0 do the lines of that
 * column, an item an element; those with 1 what is below and above it, where the line has no entry of its own. Where every
 * column has one, so, the first kind writes whole lines, and the second has nothing to do.
 */
#ifndef GROUP
#define GROUP 64
#endif
#ifndef PACKED
#define PACKED 0
#endif

typedef struct {
    SUM product, count, left, right, left_square, right_square;
} Sums;

static inline void add_values(Sums *to, const SUM a, const SUM b, const SUM from_i, const SUM from_j)
{
    if (a == a && b == b) {
        const SUM l = a - from_i, r = b - from_j;
        to->product = l * r + to->product;
        to->count += 1;
        to->left += l;
        to->right += r;
        to->left_square = l * l + to->left_square;
        to->right_square = r * r + to->right_square;
    }
}

#define ADD_ROW(to, row) \
    add_values(&(to), x[(size_t)(row) * stride + i], x[(size_t)(row) * stride + j], from_i, from_j)
#define ADD_HALF(to, from, side, at, size) \
    do { \
        const int end_ = HALF_END(side, at, size); \
        (to) = (from); \
        for (int slot_ = HALF_BEGIN(side, at, size); slot_ < end_; slot_++) \
            ADD_ROW(to, SLOT_ROW(slot_)); \
    } while (0)

/* The answer of a pair from its sums, or UNDEFINED and *lost = 1. */
static inline SUM answer_of(const Sums *sums, const bool same, const int ddof, const int min_periods, int *lost)
{
    const SUM n = sums->count;
    if (n < max(min_periods, 1) || n <= (COVARIANCE ? ddof : 0))
        return UNDEFINED;
    const SUM V_i = sums->left_square - sums->left * sums->left / n;
    const SUM V_j = sums->right_square - sums->right * sums->right / n;
    const SUM C = sums->product - sums->left * sums->right / n;
    *lost = !sound(V_i, sums->left_square) || !sound(V_j, sums->right_square);
#if CORRELATION
    return same ? 1 : clipped(C / (sqrt(V_i) * sqrt(V_j)));
#elif BETA
    return same ? 1 : C / V_i;
#else
    return C / (n - ddof);
#endif
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void masked_gpu(__global const SUM *restrict x, __global const int *restrict chunks, __global const SUM *restrict origin,
                __global const uchar *restrict marks, __global const int *restrict special,
                __global const int *restrict lengths, __global const int *restrict lines_of, __global REAL *restrict result,
                const int stride, const int columns, const int lines, const int identity, const int from, const int turn,
                const int start, const int count, const int ddof, const int min_periods)
{
    const int below = get_group_id(1), length = lengths[turn];
    const size_t size = PACKED ? (size_t)columns * (columns + 1) / 2 : (size_t)lines * columns;
    for (int entry = get_group_id(0); entry < length; entry += get_num_groups(0)) {
        const int g = special[entry] / stride, c = special[entry] % stride;
        __global const int *const table = chunks + (size_t)(from + g) * CHUNK_NUMBERS;
        __global const int *const firsts = FIRSTS(table), *const lasts = LASTS(table);
        OPEN_CHUNK(table);
        const int skipped = start - table[0], windows = min(table[1], skipped + count);
        const int begin = below ? 0 : identity ? c : 0, end = below ? 1 : identity ? c + 1 : lines;
        for (int line = begin; line < end; line++) {
            if (!below && lines_of[line] != c)
                continue;
            for (int other = get_local_id(0); other < (below ? lines : columns); other += GROUP) {
                const int p = below ? other : line, i = lines_of[p], j = below ? c : other;
                if (j < (PACKED ? p : 0) || (below && marks[(size_t)g * stride + i]))
                    continue;
                const SUM from_i = origin[(size_t)g * stride + i], from_j = origin[(size_t)g * stride + j];
                const size_t place = PACKED ? (size_t)p * columns - (size_t)p * (p + 1) / 2 + j : (size_t)p * columns + j;
                Sums all = {0, 0, 0, 0, 0, 0}, eight, four, two, one;
                for (int row = first + heads; row <= last; row++)
                    ADD_ROW(all, row);
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
                                const int k = s8 * 8 + s4 * 4 + s2 * 2 + s1;
                                ADD_HALF(one, two, s1, s8 * 8 + s4 * 4 + s2 * 2, 2);
                                if (k < skipped || k >= windows)
                                    continue;
                                int lost = 0;
                                SUM value = answer_of(&one, i == j, ddof, min_periods, &lost);
                                if (lost) {
                                    const int2 rows = (int2)(first + firsts[k], last + lasts[k]);
                                    value = careful(x, stride, rows, i, j, ddof, min_periods);
                                }
                                result[(size_t)(k - skipped) * size + place] = value;
                            }
                        }
                    }
                }
            }
        }
    }
}
