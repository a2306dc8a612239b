/* pairs_gpu.cl - covariance, correlation or beta of all pairs of columns in all windows.
 *
 * After rolling.clh, rolling_gpu.clh and tile_gpu.clh. With S the sum of z_i z_j over window w, and what columns_gpu.cl says,
 *
 *   answer(w, i, j) = (S - part_i * part_j) * (left_i * right_j)
 *
 * for start <= w < start + count, at result[((w - start) * lines + p) * columns + j], i = lines_of[p]; packed, only j >= p.
 * Pairs with a marked column are written too; masked_gpu.cl writes them again.
 *
 * One group a tile of TILE_LINES x TILE_COLUMNS pairs in chunk order[at + g]. The rows of the core pass through local memory,
 * SLOTS at a time; then those outside the core are put there and stay, with what is known of the columns, and sixteen windows
 * follow each other without a barrier. So a pair costs little more than 10 operations a window, which take less time than the
 * answer takes to be written. What limits a card is how many items its registers have room for: an item has few pairs, and
 * tiles are so large that a compute unit holds 512 items.
 *
 *   REGULAR  1: every window is one row on from the one before, so that loops have known lengths
 */
#ifndef REGULAR
#define REGULAR 0
#endif

/* to = from + the products of a slot; fma, since a compiler may fuse one element and not its mirror, and it is one
 * operation of a graphics card
 */
#define ADD_SLOT(to, from, slot) \
    do { \
        TERM a_[LINES], b_[EACH]; \
        TAKE_LINES(a_, lines, slot); \
        TAKE_COLUMNS(b_, others, slot); \
        _Pragma("unroll") \
        for (int n_ = 0; n_ < LINES * EACH; n_++) \
            to[n_ / EACH][n_ % EACH] = fma(a_[n_ / EACH], b_[n_ % EACH], from[n_ / EACH][n_ % EACH]); \
    } while (0)

/* the rows of the core that are in local memory */
#define ADD_CORE(rows) \
    do { \
        for (int slot_ = 0; slot_ < (rows); slot_++) \
            ADD_SLOT(all, all, slot_); \
    } while (0)

#if REGULAR
#define ADD_HALF(to, from, side, at, size) \
    do { \
        const int slot_ = (side) ? WINDOWS - 1 + (at) : (at) + (size) / 2 - 1; \
        ADD_SLOT(to, from, slot_); \
        _Pragma("unroll") \
        for (int more_ = 1; more_ < (size) / 2; more_++) \
            ADD_SLOT(to, to, slot_ + more_); \
    } while (0)
#else
#define ADD_HALF(to, from, side, at, size) \
    do { \
        const int end_ = HALF_END(side, at, size); \
        _Pragma("unroll") \
        for (int n_ = 0; n_ < LINES * EACH; n_++) \
            to[n_ / EACH][n_ % EACH] = from[n_ / EACH][n_ % EACH]; \
        for (int slot_ = HALF_BEGIN(side, at, size); slot_ < end_; slot_++) \
            ADD_SLOT(to, to, slot_); \
    } while (0)
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void pairs_gpu(__global const SUM *restrict x, __global const int *restrict chunks, __global const SUM *restrict origin,
               __global const SUM *restrict scale, __global const TERM *restrict part, __global const TERM *restrict left,
               __global const TERM *restrict right, __global const int *restrict order, __global const int2 *restrict tiles,
               __global const int *restrict lines_of, __global REAL *restrict result, const int stride, const int columns,
               const int line_count, const int first_chunk, const int at, const int start, const int count)
{
    __local __attribute__((aligned(16))) TERM lines[SLOTS * TILE_LINES], others[SLOTS * TILE_COLUMNS];
    __local __attribute__((aligned(16))) TERM line_part[WINDOWS * TILE_LINES], line_factor[WINDOWS * TILE_LINES];
    __local __attribute__((aligned(16))) TERM other_part[WINDOWS * TILE_COLUMNS], other_factor[WINDOWS * TILE_COLUMNS];
    __local int firsts[WINDOWS], lasts[WINDOWS];
    const int item = get_local_id(0), down = item / ACROSS, across = item % ACROSS;
    const int2 tile = tiles[get_group_id(0)];
    const int chunk = order[at + get_group_id(1)];
    __global const int *const table = chunks + (size_t)chunk * CHUNK_NUMBERS;
    OPEN_CHUNK(table);
    /* the lines and columns that this item loads */
    const int line_slot = item / (TILE_LINES / 2), line_in = item % (TILE_LINES / 2) * 2;
    const int line_a = lines_of[tile.x * TILE_LINES + line_in], line_b = lines_of[tile.x * TILE_LINES + line_in + 1];
    const int corner = tile.y * TILE_COLUMNS;
    const int column_slot = item / (TILE_COLUMNS / 2), column_in = item % (TILE_COLUMNS / 2) * 2;
    const int place = PLACE_OF(column_in), next_place = PLACE_OF(column_in + 1), column = corner + column_in;
    __global const SUM *const origins = origin + (size_t)(chunk - first_chunk) * stride;
    const PAIR line_from = (PAIR)(origins[line_a], origins[line_b]);
    const PAIR column_from = TWO_AT(PAIR, origins + column);
#if SCALED
    __global const SUM *const scales = scale + (size_t)(chunk - first_chunk) * stride;
    const PAIR line_scale = (PAIR)(scales[line_a], scales[line_b]);
    const PAIR column_scale = TWO_AT(PAIR, scales + column);
#endif
    PAIR line_pairs[LOADS_OF(TILE_LINES)], column_pairs[LOADS_OF(TILE_COLUMNS)];
    /* the first line that it computes */
    const int line = tile.x * TILE_LINES + down * LINES;

    TERM all[LINES][EACH], eight[LINES][EACH], four[LINES][EACH], two[LINES][EACH], one[LINES][EACH];
#pragma unroll
    for (int n = 0; n < LINES * EACH; n++)
        all[n / EACH][n % EACH] = 0;
    /* rows that go to local memory next, of them `split` in a run from `front` on, the others from `last + 1` on */
    int front = first + heads, rows = min(SLOTS, last + 1 - front), split = rows;
    if (rows <= 0) {
        front = first;
        rows = heads + tails;
        split = heads;
    }
    LOAD(rows, front, split, last + 1);
    KNOW(TILE_LINES, line_slot, PUT_LINES, line_part, ((TERMS)(part[row_ + line_a], part[row_ + line_b])));
    KNOW(TILE_LINES, line_slot, PUT_LINES, line_factor, ((TERMS)(left[row_ + line_a], left[row_ + line_b])));
    KNOW(TILE_COLUMNS, column_slot, PUT_COLUMNS, other_part, TWO_AT(TERMS, part + row_ + column));
    KNOW(TILE_COLUMNS, column_slot, PUT_COLUMNS, other_factor, TWO_AT(TERMS, right + row_ + column));
    for (int row = first + heads; row <= last; row += SLOTS) {
        const int now = rows;
        STORE(now);
        barrier(CLK_LOCAL_MEM_FENCE);
        /* the next ones are on their way while these are added */
        const int more = row + SLOTS <= last;
        front = more ? row + SLOTS : first;
        rows = more ? min(SLOTS, last + 1 - front) : heads + tails;
        split = more ? rows : heads;
        /* of double the next rows are on their way meanwhile; of float that takes registers that cost more */
#if !SCALED
        LOAD(rows, front, split, last + 1);
#endif
        ADD_CORE(now);
        barrier(CLK_LOCAL_MEM_FENCE);
#if SCALED
        LOAD(rows, front, split, last + 1);
#endif
    }
    STORE(heads + tails);
    if (item < WINDOWS) {
        firsts[item] = FIRSTS(table)[item];
        lasts[item] = LASTS(table)[item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    /* windows of the chunk that are asked for */
    const int skipped = start - table[0], windows = min(table[1], skipped + count);
#if PACKED
    const size_t size = (size_t)columns * (columns + 1) / 2;
#else
    const size_t size = (size_t)line_count * columns;
#endif
    /* bit i * EACH + j: the pair is a column with itself */
    int itself = 0;
    uint beyond = 0;
#if !COVARIANCE
    for (int i = 0; i < LINES; i++)
        for (int j = 0; j < EACH; j++)
            itself |= (lines_of[line + i] == corner + COLUMN_OF(across, j)) << (i * EACH + j);
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
                    const int k = s8 * 8 + s4 * 4 + s2 * 2 + s1;
                    ADD_HALF(one, two, s1, s8 * 8 + s4 * 4 + s2 * 2, 2);
                    if (k < skipped || k >= windows)
                        continue;
                    TERM u[LINES], f[LINES], v[EACH], g[EACH];
                    REAL answer[LINES][EACH];
                    TAKE_LINES(u, line_part, k);
                    TAKE_LINES(f, line_factor, k);
                    TAKE_COLUMNS(v, other_part, k);
                    TAKE_COLUMNS(g, other_factor, k);
#pragma unroll
                    for (int i = 0; i < LINES; i++)
#pragma unroll
                        for (int j = 0; j < EACH; j++)
                            answer[i][j] = fma(-u[i], v[j], one[i][j]) * (f[i] * g[j]);
#pragma unroll
                    for (int n = 0; n < LINES * EACH; n++) {
                        if (itself >> n & 1 && answer[n / EACH][n % EACH] == answer[n / EACH][n % EACH])
                            answer[n / EACH][n % EACH] = 1;
                        else
                            beyond |= BEYOND(answer[n / EACH][n % EACH]);
                    }
                    __global REAL *const matrix = result + (size_t)(k - skipped) * size;
#pragma unroll
                    for (int i = 0; i < LINES; i++) {
                        const int p = line + i;
                        if (p < line_count)
                            put(matrix + LINE_BEGIN(p), p, corner, across, columns, answer[i]);
                    }
                }
            }
        }
    }
#if CORRELATION
    if (IS_BEYOND(beyond))
        for (int k = max(skipped, 0); k < windows; k++)
            clip(result + (size_t)(k - skipped) * size, line, corner, across, columns, line_count);
#endif
}
