/* presence.cl - which values of a matrix are there: one bit each, 32 rows of a column in a word.
 *
 *   bits[w * columns + j], bit b, is 1 where source[(w * 32 + b) * row_stride + j * column_stride] is not NaN
 *
 * and 0 behind the last row. A word of every column lies side by side, so that neighbouring lanes write, and count
 * (common_rows.cl), along memory.
 *
 * For CPU devices: one item does COLUMNS columns of one word, and the compiler makes vectors of them; groups are (columns /
 * COLUMNS, words), rounded up. A GPU takes gap_columns.cl.
 */
#ifndef COLUMNS
#define COLUMNS 64      /* columns of an item */
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void presence(__global const SOURCE *restrict source, __global uint *restrict bits, const int columns, const int rows,
              const long row_stride, const long column_stride)
{
    const int first = get_group_id(0) * COLUMNS, begin = get_group_id(1) * 32;
    const int count = min(32, rows - begin), whole = first + COLUMNS <= columns;
    __global const SOURCE *in = source + begin * row_stride + first * column_stride;
    __global uint *out = bits + (size_t)get_group_id(1) * columns + first;
    uint word[COLUMNS];
    for (int o = 0; o < COLUMNS; o++)
        word[o] = 0;

    if (whole && column_stride == 1)
        for (int b = 0; b < count; b++, in += row_stride)
#pragma unroll
            for (int o = 0; o < COLUMNS; o++) {
                const SOURCE x = in[o];
                word[o] |= (uint)(x == x) << b;
            }
    else
        for (int o = 0; o < COLUMNS; o++)
            if (first + o < columns)
                for (int b = 0; b < count; b++) {
                    const SOURCE x = in[b * row_stride + o * column_stride];
                    word[o] |= (uint)(x == x) << b;
                }
    for (int o = 0; o < COLUMNS; o++)
        if (first + o < columns)
            out[o] = word[o];
}
