/* columns_squares.cl - the sum, the smallest and the largest of each column, as columns.cl does, with local memory.
 *
 *   partial[(c * 3 + s) * columns + j] = sum (s = 0), smallest (1), largest (2) of
 *   source[k * row_stride + j * column_stride] over the rows k of chunk c: c * chunk <= k < min((c + 1) * chunk, rows)
 *
 * With MISSING as there. A NaN makes the sum NaN; smallest and largest are those of the other values, inf and -inf if there
 * are none. centring.clh puts the chunks together.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE columns. Neighbouring items read along memory: the columns of one row,
 * or, where rows are neighbours there, rows of one column; each has AT_ONCE values on their way, which hides the wait for
 * memory. What they found meets in local memory.
 */
#ifndef SQUARE
#define SQUARE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef AT_ONCE
#define AT_ONCE 8
#endif

static inline void take(const SOURCE value, SUM *total, SOURCE *low, SOURCE *high)
{
    *total += MISSING && value != value ? (SUM)0 : (SUM)value;
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void columns(__global const SOURCE *restrict source, __global SUM *restrict partial, const int columns, const int rows,
             const int chunk, const long row_stride, const long column_stride)
{
    __local SUM totals[SQUARE][SQUARE + 1];
    __local SOURCE lows[SQUARE][SQUARE + 1], highs[SQUARE][SQUARE + 1];
    const int x = get_local_id(0), y = get_local_id(1), first = get_group_id(0) * SQUARE;
    const int begin = get_group_id(1) * chunk, end = min(begin + chunk, rows);
    const int turned = column_stride != 1;
    const int lane = turned ? x : y, lanes = turned ? SQUARE : DOWN;
    const long step = lanes * row_stride;

    for (int j = turned ? y : x; j < SQUARE; j += turned ? DOWN : SQUARE) {
        if (first + j >= columns)
            continue;
        __global const SOURCE *at = source + (begin + lane) * row_stride + (first + j) * column_stride;
        SUM total = 0;
        SOURCE low = INFINITY, high = -INFINITY;
        int k = begin + lane;
        for (; k + (AT_ONCE - 1) * lanes < end; k += AT_ONCE * lanes, at += AT_ONCE * step) {
            SOURCE values[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                values[i] = at[i * step];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                take(values[i], &total, &low, &high);
        }
        for (; k < end; k += lanes, at += step)
            take(at[0], &total, &low, &high);
        totals[lane][j] = total;
        lows[lane][j] = low;
        highs[lane][j] = high;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (y == 0 && first + x < columns) {
        __global SUM *out = partial + (size_t)get_group_id(1) * 3 * columns + first + x;
        SUM total = totals[0][x];
        SOURCE low = lows[0][x], high = highs[0][x];
        for (int i = 1; i < lanes; i++) {
            total += totals[i][x];
            low = lows[i][x] < low ? lows[i][x] : low;
            high = highs[i][x] > high ? highs[i][x] : high;
        }
        out[0] = total;
        out[columns] = low;
        out[2 * columns] = high;
    }
}
