/* tile_sums.cl - sums of every column over lists of rows, and of its squares, with local memory.
 *
 *   sums[l * width + c] = sum over the rows k of list l of z(k, c), and sums[(lists + l) * width + c] that of z(k, c) squared
 *
 * or that and what was there before if `more` is not 0. Lists as in gaps.clh, panels as moments/pack_centred_squares.cl lays
 * them out. Sums are added up in SUM and leave in REAL; of floats, each list's part of a tile is summed up in float first,
 * MOST quads at a time.
 *
 * A product with masks would take as long as a dense one, however few values are missing. Here a tile of rows lies in local
 * memory while every list of a block takes from it the rows that it names: one read for each value, a whole row of LANES
 * neighbours at a time, so local memory is busy and little else counts. Sums stay in registers until all rows are done.
 *
 * One group of LANES x DOWN items does WIDE columns, EACH side by side for an item, and a block, LISTS lists an item; groups
 * are (blocks, width / WIDE).
 */
#ifndef PANEL
#define PANEL 32
#endif
#ifndef LANES
#define LANES 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef EACH
#define EACH 1
#endif
#ifndef MOST
#define MOST 16
#endif
#define LISTS (BLOCK / DOWN)
#define WIDE (LANES * EACH)
#define ITEMS (LANES * DOWN)
/* a unit is 16 bytes of a row */
#if REAL_BITS == 64
#define UNIT_SIZE 2
#else
#define UNIT_SIZE 4
#endif
#define UNIT JOIN(REAL, UNIT_SIZE)
#define ROW_UNITS (WIDE / UNIT_SIZE)
#define TILE_UNITS (TALL * ROW_UNITS)
#if EACH == 1
#define PIECE REAL
#define TOTAL SUM
#define WIDER(x) ((SUM)(x))
#define NARROWER(x) ((REAL)(x))
#else
#define PIECE JOIN(REAL, EACH)
#define TOTAL JOIN(SUM, EACH)
#define WIDER(x) JOIN(convert_, TOTAL)(x)
#define NARROWER(x) JOIN(convert_, PIECE)(x)
#endif
#if PANEL % WIDE != 0 || WIDE % UNIT_SIZE != 0 || TILE_UNITS % ITEMS != 0 || BLOCK % DOWN != 0
#error "panels must be whole runs of WIDE columns, and items must share tiles and blocks evenly"
#endif

/* Add the rows of quads[at] .. quads[end - 1] to the sums of list l. */
#define TAKE(quads, part, part_squares) do { \
    const ushort4 k = quads[at]; \
    const PIECE a = in[k.s0 * LANES], b = in[k.s1 * LANES], c = in[k.s2 * LANES], d = in[k.s3 * LANES]; \
    part += (a + b) + (c + d); \
    part_squares = d * d + (c * c + (b * b + (a * a + part_squares))); } while (0)
#if SUM_BITS == REAL_BITS
#define TAKE_ALL(quads) \
    for (; at < end; at++) \
        TAKE(quads, total[l], squares[l]);
#else
#define TAKE_ALL(quads) \
    while (at < end) { \
        const int stop = min(end, at + MOST); \
        PIECE part = (PIECE)(0), part_squares = (PIECE)(0); \
        for (; at < stop; at++) \
            TAKE(quads, part, part_squares); \
        total[l] += WIDER(part); \
        squares[l] += WIDER(part_squares); \
    }
#endif

__kernel __attribute__((reqd_work_group_size(LANES, DOWN, 1)))
void tile_sums(__global const REAL *restrict panels, __global const ushort4 *restrict quads, __global const int *restrict edges,
               __global REAL *restrict sums, const int lists, const int rows, const int rows_padded, const int more)
{
    __local UNIT tile[2][TILE_UNITS + ROW_UNITS];
    __local ushort4 index[2][ROOM];
    __local int edge[2][BLOCK + 1];
    const int lane = get_local_id(0), y = get_local_id(1), item = y * LANES + lane, column = get_group_id(1) * WIDE;
    const int tiles = (rows + TALL - 1) / TALL, width = get_num_groups(1) * WIDE;
    __global const REAL *strip = panels + (size_t)(column / PANEL) * rows_padded * PANEL;
    __global const int *next = edges + (size_t)get_group_id(0) * tiles * (BLOCK + 1);
    int begin = next[0], end_of_tile = next[BLOCK];
    TOTAL total[LISTS], squares[LISTS];

#pragma unroll
    for (int l = 0; l < LISTS; l++)
        total[l] = squares[l] = (TOTAL)(0);
    if (item < ROW_UNITS)
        tile[0][TILE_UNITS + item] = tile[1][TILE_UNITS + item] = (UNIT)(0);
    for (int t = -1; t < tiles; t++) {
        const int slot = t & 1;
        COPIED;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t + 1 < tiles) {
#pragma unroll
            for (int n = 0; n < TILE_UNITS / ITEMS; n++) {
                const int unit = item + n * ITEMS, row = (t + 1) * TALL + unit / ROW_UNITS;
                if (row < rows)
                    COPY(tile[slot ^ 1] + unit,
                         strip + (size_t)row * PANEL + column % PANEL + unit % ROW_UNITS * UNIT_SIZE, UNIT, 16);
            }
            copy_lists(index[slot ^ 1], edge[slot ^ 1], quads, next, 0, BLOCK, begin, end_of_tile, item, ITEMS);
            next += BLOCK + 1;
            if (t + 2 < tiles) {
                begin = next[0];
                end_of_tile = next[BLOCK];
            }
        }
        if (t < 0)
            continue;
        __local const PIECE *in = (__local const PIECE *)tile[slot] + lane;
        const int base = edge[slot][0];
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            int at = edge[slot][y * LISTS + l], end = edge[slot][y * LISTS + l + 1];
            if (end - base <= ROOM) {
                at -= base;
                end -= base;
                TAKE_ALL(index[slot])
            } else
                TAKE_ALL(quads)
        }
    }
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        const int list = get_group_id(0) * BLOCK + y * LISTS + l;
        if (list < lists) {
            __global PIECE *to = (__global PIECE *)(sums + (size_t)list * width + column) + lane;
            __global PIECE *to_squares = (__global PIECE *)(sums + (size_t)(lists + list) * width + column) + lane;
            *to = more ? *to + NARROWER(total[l]) : NARROWER(total[l]);
            *to_squares = more ? *to_squares + NARROWER(squares[l]) : NARROWER(squares[l]);
        }
    }
}
