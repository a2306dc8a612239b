/* tile_counts.cl - how many rows of a list every column has.
 *
 *   counts[l * across + c] = the rows of list l that column c has, or that and what was there before if `more` is not 0
 *
 * Lists as in gaps.clh, turned as turn_bits.cl leaves it, `first_row` the row of it that is the slab's first one.
 *
 * A word of a row tells of 32 columns, and an item counts for all of them at once: bit c of planes[p] is bit p of the count
 * of column c, so that some logical instructions add eight rows to 32 counts.
 *
 * One group of LANES x DOWN items does LANES words and a part of a block, LISTS lists an item; groups are
 * (blocks * BLOCK / (DOWN * LISTS), across / 32 / LANES).
 */
#ifndef LANES
#define LANES 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef LISTS
#define LISTS 4
#endif
#ifndef PLANES
#define PLANES 16       /* bits of a count: no list has 2^PLANES rows */
#endif
#define ITEMS (LANES * DOWN)
#define PART (DOWN * LISTS)
#define PARTS (BLOCK / PART)
#define UNITS (TALL * LANES / 4)
#if BLOCK % PART != 0 || PLANES < 3 || LANES % 4 != 0
#error "a block must be whole parts of DOWN * LISTS, PLANES 3 or more, and LANES whole units of 4"
#endif

/* sum is the last bit of a + b + c, carry the other one */
#define ADD(carry, sum, a, b, c) do { \
    const uint a_ = (a), c_ = (c), unlike = a_ ^ (b); \
    carry = (unlike & c_) | (a_ & ~unlike); \
    sum = unlike ^ c_; } while (0)
/* Add the rows of two quads of list l, of which the second may be behind `end`. */
#define TAKE(quads) do { \
    const ushort4 k = quads[at], m = at + 1 < end ? quads[at + 1] : (ushort4)(TALL); \
    const uint a = in[k.s0 * LANES], b = in[k.s1 * LANES], c = in[k.s2 * LANES], d = in[k.s3 * LANES]; \
    const uint e = in[m.s0 * LANES], f = in[m.s1 * LANES], g = in[m.s2 * LANES], h = in[m.s3 * LANES]; \
    uint last, one, two, three, four, carry; \
    ADD(one, last, a, b, planes[l][0]); \
    ADD(two, last, c, d, last); \
    ADD(three, last, e, f, last); \
    ADD(four, planes[l][0], g, h, last); \
    ADD(one, last, one, two, planes[l][1]); \
    ADD(two, planes[l][1], three, four, last); \
    ADD(carry, planes[l][2], one, two, planes[l][2]); \
    _Pragma("unroll") for (int p = 3; p < PLANES; p++) { \
        const uint both = planes[l][p] & carry; \
        planes[l][p] ^= carry; \
        carry = both; \
    } } while (0)

__kernel __attribute__((reqd_work_group_size(LANES, DOWN, 1)))
void tile_counts(__global const uint *restrict turned, __global const ushort4 *restrict quads,
                 __global const int *restrict edges, __global int *restrict counts, const int lists, const int first_row,
                 const int rows, const int more)
{
    __local uint4 tile[2][UNITS + LANES / 4];
    __local ushort4 index[2][ROOM];
    __local int edge[2][PART + 1];
    const int lane = get_local_id(0), y = get_local_id(1), item = y * LANES + lane;
    const int block = get_group_id(0) / PARTS, part = get_group_id(0) % PARTS * PART;
    const int across = get_num_groups(1) * LANES, tiles = (rows + TALL - 1) / TALL;
    __global const uint *strip = turned + (size_t)first_row * across + get_group_id(1) * LANES;
    __global const int *next = edges + (size_t)block * tiles * (BLOCK + 1) + part;
    int begin = next[0], end_of_tile = next[PART];
    uint planes[LISTS][PLANES];

#pragma unroll
    for (int l = 0; l < LISTS; l++)
#pragma unroll
        for (int p = 0; p < PLANES; p++)
            planes[l][p] = 0;
    if (item < LANES / 4)
        tile[0][UNITS + item] = tile[1][UNITS + item] = (uint4)(0);
    for (int t = -1; t < tiles; t++) {
        const int slot = t & 1;
        COPIED;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t + 1 < tiles) {
            for (int unit = item; unit < UNITS; unit += ITEMS) {
                const int row = (t + 1) * TALL + unit / (LANES / 4);
                if (row < rows)
                    COPY(tile[slot ^ 1] + unit, strip + (size_t)row * across + unit % (LANES / 4) * 4, uint4, 16);
            }
            copy_lists(index[slot ^ 1], edge[slot ^ 1], quads, next, 0, PART, begin, end_of_tile, item, ITEMS);
            next += BLOCK + 1;
            if (t + 2 < tiles) {
                begin = next[0];
                end_of_tile = next[PART];
            }
        }
        if (t < 0)
            continue;
        __local const uint *in = (__local const uint *)tile[slot] + lane;
        const int base = edge[slot][0];
#pragma unroll
        for (int l = 0; l < LISTS; l++) {
            int at = edge[slot][y * LISTS + l], end = edge[slot][y * LISTS + l + 1];
            if (end - base <= ROOM)
                for (at -= base, end -= base; at < end; at += 2)
                    TAKE(index[slot]);
            else
                for (; at < end; at += 2)
                    TAKE(quads);
        }
    }
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        const int list = block * BLOCK + part + y * LISTS + l;
        if (list < lists) {
            __global int4 *to = (__global int4 *)(counts + ((size_t)list * across + get_group_id(1) * LANES + lane) * 32);
            for (int b = 0; b < 32; b += 4) {
                int count[4] = {0, 0, 0, 0};
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int p = 0; p < PLANES; p++)
                        count[i] |= (planes[l][p] >> (b + i) & 1) << p;
                const int4 four = (int4)(count[0], count[1], count[2], count[3]);
                to[b / 4] = more ? to[b / 4] + four : four;
            }
        }
    }
}
