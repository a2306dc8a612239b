/* pairs_gpu.cl - covariance, correlation or beta of all pairs of columns in all windows (rolling.clh, rolling_gpu.clh, tile_gpu.clh).
 *
 *   answer(w, i, j) = (S - part_i * part_j) * (left_i * right_j), S the sum of z_i z_j over window w, as columns_gpu.cl says
 *
 * for start <= w < start + count, at result[((w - start) * lines + p) * columns + j], i = lines_of[p]; packed, only j >= p.
 * Pairs with a marked column are written too; masked_gpu.cl writes them again.
 *
 * One group a tile of TILE_LINES x TILE_COLUMNS pairs in chunk order[at + g]; an item has 4 lines of a vector of pairs. The rows of the core
 * pass through local memory, SLOTS at a time; then those outside the core are put there and stay, with what is known of the
 * columns, and sixteen windows follow each other without a barrier. So a pair costs little more than 10 operations a window,
 * which take less time than the answer takes to be written.
 *
 * A line of an answer begins at a multiple of `unit` elements plus the line times the columns: what a tile is pushed by
 * (tile_gpu.clh). Settings beside those of the headers:
 *
 *   REGULAR  1: chunks are full and every window is one row on from the one before, so that loops have known lengths
 */
#ifndef REGULAR
#define REGULAR 0
#endif

/* to = from + the products of a slot */
#define ADD_SLOT(to, from, slot) \
    do { \
        TERM a_[LINES], b_[EACH]; \
        TAKE_LINES(a_, lines, slot); \
        TAKE_COLUMNS(b_, others, slot); \
        _Pragma("unroll") \
        for (int n_ = 0; n_ < LINES * EACH; n_++) \
            to[n_ / EACH][n_ % EACH] = a_[n_ / EACH] * b_[n_ % EACH] + from[n_ / EACH][n_ % EACH]; \
    } while (0)

/* The rows of the core that are in local memory; of float a few are added up by themselves, which keeps long sums exact. */
#if SCALED
#define ADD_CORE(rows) \
    do { \
        for (int begin_ = 0; begin_ < (rows); begin_ += 8) { \
            for (int n_ = 0; n_ < LINES * EACH; n_++) \
                one[n_ / EACH][n_ % EACH] = 0; \
            for (int slot_ = begin_; slot_ < min(begin_ + 8, rows); slot_++) \
                ADD_SLOT(one, one, slot_); \
            for (int n_ = 0; n_ < LINES * EACH; n_++) \
                all[n_ / EACH][n_ % EACH] += one[n_ / EACH][n_ % EACH]; \
        } \
    } while (0)
#else
#define ADD_CORE(rows) \
    do { \
        for (int slot_ = 0; slot_ < (rows); slot_++) \
            ADD_SLOT(all, all, slot_); \
    } while (0)
#endif

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
               const int line_count, const int unit, const int first_chunk, const int at, const int start, const int count)
{
    __local __attribute__((aligned(16))) TERM lines[SLOTS * TILE_LINES], others[SLOTS * TILE_WIDTH];
    __local __attribute__((aligned(16))) TERM line_part[WINDOWS * TILE_LINES], line_factor[WINDOWS * TILE_LINES];
    __local __attribute__((aligned(16))) TERM other_part[WINDOWS * TILE_WIDTH], other_factor[WINDOWS * TILE_WIDTH];
    __local int firsts[WINDOWS], lasts[WINDOWS];
    const int item = get_local_id(0), down = item / ACROSS, across = item % ACROSS;
    const int2 tile = tiles[get_group_id(0)];
    const int chunk = order[at + get_group_id(1)];
    __global const int *const table = chunks + (size_t)chunk * CHUNK_NUMBERS;
    OPEN_CHUNK(table);
    /* the lines and columns that this item loads; in front of the first column, that one */
    const int line_slot = item / (TILE_LINES / 2), line_in = item % (TILE_LINES / 2) * 2;
    const int line_place = LINE_PLACE(line_in), next_line = LINE_PLACE(line_in + 1);
    const int line_a = lines_of[tile.x * TILE_LINES + line_in], line_b = lines_of[tile.x * TILE_LINES + line_in + 1];
    const int corner = tile.y * TILE_COLUMNS;
    const int column_slot = item / (TILE_COLUMNS / 2), column_in = item % (TILE_COLUMNS / 2) * 2;
    const int place = COLUMN_PLACE(column_in), next_place = COLUMN_PLACE(column_in + 1), column = corner + column_in;
    const int margin_slot = item / 8, margin_place = item % 8 * 2, margin = max(corner - MARGIN + margin_place, 0);
    __global const SUM *const origins = origin + (size_t)(chunk - first_chunk) * stride;
    const PAIR line_from = (PAIR)(origins[line_a], origins[line_b]);
    const PAIR column_from = TWO_AT(PAIR, origins + column);
    const PAIR margin_from = TWO_AT(PAIR, origins + margin);
#if SCALED
    __global const SUM *const scales = scale + (size_t)(chunk - first_chunk) * stride;
    const PAIR line_scale = (PAIR)(scales[line_a], scales[line_b]);
    const PAIR column_scale = TWO_AT(PAIR, scales + column);
    const PAIR margin_scale = TWO_AT(PAIR, scales + margin);
#endif
    PAIR line_pairs[LOADS_OF(TILE_LINES)], column_pairs[LOADS_OF(TILE_COLUMNS)], margin_pairs[LOADS_OF(16)];
    /* the first line that it computes, and how far its columns lie to the left */
    const int line = tile.x * TILE_LINES + LINE_OF(down, 0), shift = (int)((uint)line * (uint)columns & (uint)(unit - 1));

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
    if (MARGIN) {
        KNOW(16, margin_slot, PUT_MARGIN, other_part, TWO_AT(TERMS, part + row_ + margin));
        KNOW(16, margin_slot, PUT_MARGIN, other_factor, TWO_AT(TERMS, right + row_ + margin));
    }
    for (int row = first + heads; row <= last; row += SLOTS) {
        const int now = rows;
        STORE(now);
        barrier(CLK_LOCAL_MEM_FENCE);
        /* the next ones are on their way while these are added */
        const int more = row + SLOTS <= last;
        front = more ? row + SLOTS : first;
        rows = more ? min(SLOTS, last + 1 - front) : heads + tails;
        split = more ? rows : heads;
        LOAD(rows, front, split, last + 1);
        ADD_CORE(now);
        barrier(CLK_LOCAL_MEM_FENCE);
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
            itself |= (lines_of[line + 4 * i] == corner + COLUMN_OF(across, j)) << (i * EACH + j);
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
                            answer[i][j] = (one[i][j] - u[i] * v[j]) * (f[i] * g[j]);
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
                        const int p = line + 4 * i;
                        if (p < line_count)
                            put(matrix + LINE_BEGIN(p), p, corner, across, shift, columns, answer[i]);
                    }
                }
            }
        }
    }
#if CORRELATION
    if (IS_BEYOND(beyond))
        for (int k = max(skipped, 0); k < windows; k++)
            clip(result + (size_t)(k - skipped) * size, line, corner, across, shift, columns, line_count);
#endif
}
