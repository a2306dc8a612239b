/* columns_squares.cl - the sum, the smallest and the largest of each column, as columns.cl does, with local memory.
 *
 *   partial[(c * 3 + s) * columns + j] = sum (s = 0), smallest (1), largest (2) of
 *   source[k * row_stride + j * column_stride] over the rows k of chunk c: c * chunk <= k < min((c + 1) * chunk, rows)
 *
 * as measuring.clh finds them, and centring.clh puts the chunks together. One group of SQUARE x DOWN items a chunk and SQUARE
 * columns.
 */
__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void columns(__global const SOURCE *restrict source, __global SUM *restrict partial, const int columns, const int rows,
             const int chunk, const long row_stride, const long column_stride)
{
    __local SUM totals[SQUARE][SQUARE + 1];
    __local SOURCE lows[SQUARE][SQUARE + 1], highs[SQUARE][SQUARE + 1];
    const int first = get_group_id(0) * SQUARE, column = first + get_local_id(0), begin = get_group_id(1) * chunk;
    const struct measured m = measure_chunk(source, first, columns, begin, min(begin + chunk, rows), row_stride, column_stride,
                                            totals, lows, highs);
    if (get_local_id(1) == 0 && column < columns) {
        __global SUM *out = partial + (size_t)get_group_id(1) * 3 * columns + column;
        out[0] = m.total;
        out[columns] = m.low;
        out[2 * columns] = m.high;
    }
}
