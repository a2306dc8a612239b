/* mask_panels.cl - which values of a slab are there, as panels of halves of 1 and 0, of what presence.cl says.
 *
 *   half k % 8 of unit (j / 64 * rows_padded / DEPTH + k / DEPTH) * PLANE_UNITS + SPLIT_UNIT(j % 64, k % DEPTH / 8)
 *       = SPLIT_SCALE where row first + k of column j is there, else 0,   k < rows_padded, j of whole panels
 *
 * as split_panels.clh describes panels of one plane, and halves.clh SPLIT_SCALE. 1 and 0 are exact in hi, so products with them
 * lose nothing but what the other factor has lost.
 *
 * An item writes 8 rows of a column, 16 bytes, neighbours side by side. One group of ITEMS items does DEPTH rows of 32 columns;
 * groups are (columns of all panels / 32, rows_padded / DEPTH).
 */
#define ITEMS 256
/* SPLIT_SCALE as a half, and where it is of two rows in a word */
#define ONE 0x6400u
#define TWO(bits) (((bits) & 1 ? ONE : 0) | ((bits) & 2 ? ONE << 16 : 0))
#if SPLIT_SCALE != 1024 || ITEMS != 4 * DEPTH
#error "ONE is the half of 1024, and a group does DEPTH rows of 32 columns"
#endif

/* The bits of 8 rows from `row` on of a column, the first of them lowest; 0 behind `end`. */
static inline uint eight_rows(__global const uint *bits, const int columns, const int j, const int row, const int end)
{
    const int shift = row % 32, left = end - row;
    if (left <= 0 || j >= columns)
        return 0;
    __global const uint *word = bits + (size_t)(row / 32) * columns + j;
    uint found = word[0] >> shift;
    if (shift > 24 && left > 32 - shift)
        found |= word[columns] << (32 - shift);
    return found & (left < 8 ? (1u << left) - 1 : 255u);
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void mask_panels(__global const uint *restrict bits, __global uint4 *restrict panels, const int columns, const int first,
                 const int rows, const int rows_padded)
{
    const int item = get_local_id(0), begin = get_group_id(0) * 32, top = get_group_id(1) * DEPTH;
    const int octet = item % 8, j = begin + item / 8;
    const uint found = eight_rows(bits, columns, j, first + top + 8 * octet, first + rows);
    panels[((size_t)(j / 64) * (rows_padded / DEPTH) + top / DEPTH) * PLANE_UNITS + SPLIT_UNIT(j % 64, octet)] =
        (uint4)(TWO(found), TWO(found >> 2), TWO(found >> 4), TWO(found >> 6));
}
