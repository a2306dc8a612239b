/* gap_columns.cl - which values of a matrix are there, and what is known of each column of it, chunk by chunk of rows.
 *
 *   x(k, j) = source[k * row_stride + j * column_stride],   there unless it is NaN
 *   bits[w * columns + j], bit b, is 1 where x(w * 32 + b, j) is there, and 0 behind the last row
 *   parts[(5 * g + s) * columns + j] = of chunk g, rows g * chunk and on, the sum of column j (s = 0), its smallest value (1) and
 *                                      its largest (2), inf and -inf where it has none; its rows (3), and its first row (4),
 *                                      the rows of the matrix where it has none
 *
 * chunk is a multiple of 32. One group of ACROSS x DOWN items does ACROSS columns of a chunk, an item 32 rows at a time, of which
 * many are read before any is looked at; groups are (columns / ACROSS, chunks).
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef DOWN
#define DOWN 8
#endif

#define TAKE(b) do { \
    const SOURCE value = in[(b) * row_stride]; \
    word |= (uint)(value == value) << (b); \
    total += value == value ? (SUM)value : 0; \
    low = value < low ? value : low; \
    high = value > high ? value : high; } while (0)

__kernel __attribute__((reqd_work_group_size(ACROSS, DOWN, 1)))
void gap_columns(__global const SOURCE *restrict source, __global uint *restrict bits, __global SUM *restrict parts,
                 const int columns, const int rows, const int chunk, const long row_stride, const long column_stride)
{
    __local SUM totals[DOWN][ACROSS];
    __local SOURCE lows[DOWN][ACROSS], highs[DOWN][ACROSS];
    __local int counts[DOWN][ACROSS], leads[DOWN][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), j = get_group_id(0) * ACROSS + x;
    const int begin = get_group_id(1) * chunk, end = min(begin + chunk, rows);
    SUM total = 0;
    SOURCE low = INFINITY, high = -INFINITY;
    int count = 0, lead = rows;

    if (j < columns)
        for (int row = begin + y * 32; row < end; row += DOWN * 32) {
            __global const SOURCE *in = source + row * row_stride + j * column_stride;
            uint word = 0;
            if (row + 32 <= end)
#pragma unroll 8
                for (int b = 0; b < 32; b++)
                    TAKE(b);
            else
                for (int b = 0; b < end - row; b++)
                    TAKE(b);
            bits[(size_t)(row / 32) * columns + j] = word;
            count += popcount(word);
            if (word)
                lead = min(lead, row + 31 - (int)clz(word & -word));
        }
    totals[y][x] = total;
    lows[y][x] = low;
    highs[y][x] = high;
    counts[y][x] = count;
    leads[y][x] = lead;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y > 0 || j >= columns)
        return;
    for (int i = 1; i < DOWN; i++) {
        total += totals[i][x];
        low = min(low, lows[i][x]);
        high = max(high, highs[i][x]);
        count += counts[i][x];
        lead = min(lead, leads[i][x]);
    }
    __global SUM *out = parts + (size_t)get_group_id(1) * 5 * columns + j;
    out[0] = total;
    out[columns] = low;
    out[2 * columns] = high;
    out[3 * columns] = count;
    out[4 * columns] = lead;
}
