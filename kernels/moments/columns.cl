/* columns.cl - the sum, the smallest and the largest of each column of a matrix, chunk by chunk of rows.
 *
 *   partial[(c * 3 + s) * columns + j] = sum (s = 0), smallest (1), largest (2) of
 *   source[k * row_stride + j * column_stride] over the rows k of chunk c: c * chunk <= k < min((c + 1) * chunk, rows)
 *
 * The host adds up the chunks, of which it asks for a few. A NaN or inf makes the sum one that is not finite; smallest and
 * largest mean something only where it is finite. If MISSING, NaN is left out, and a chunk of nothing else has smallest inf
 * and largest -inf.
 *
 * For CPU devices: one work-item a chunk and COLUMNS columns. Rows in memory order keep LANES or more sums under way, and so
 * do columns in memory order, whose lanes are added up at the end; equal columns give equal bits either way.
 */
#ifndef COLUMNS
#define COLUMNS 32
#endif
#ifndef LANES
#define LANES 16
#endif
#if COLUMNS % LANES != 0
#error "COLUMNS must be a multiple of LANES"
#endif

static inline __attribute__((always_inline)) void
start(const SUM x, SUM *total, SUM *low, SUM *high)
{
    *total = 0;
    *low = MISSING ? INFINITY : x;
    *high = MISSING ? -INFINITY : x;
}

static inline __attribute__((always_inline)) void
take(const SUM x, SUM *total, SUM *low, SUM *high)
{
    *total += MISSING && x != x ? (SUM)0 : x;
    *low = x < *low ? x : *low;
    *high = x > *high ? x : *high;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void columns(__global const SOURCE *restrict source, __global SUM *restrict partial, const int columns, const int rows,
             const int chunk, const long row_stride, const long column_stride)
{
    const int first = get_group_id(0) * COLUMNS;
    const int valid = min(COLUMNS, columns - first);
    const int begin = get_group_id(1) * chunk;
    const int count = min(chunk, rows - begin);
    __global const SOURCE *in = source + begin * row_stride + first * column_stride;
    __global SUM *out = partial + (size_t)get_group_id(1) * 3 * columns + first;
    SUM total[LANES], low[LANES], high[LANES];

    if (column_stride == 1)
        for (int left = 0; left < valid; left += LANES) {
            const int lanes = min(LANES, valid - left);
            __global const SOURCE *at = in + left;
            for (int j = 0; j < lanes; j++)
                start(at[j], total + j, low + j, high + j);
            if (lanes == LANES)
                for (int k = 0; k < count; k++, at += row_stride)
#pragma unroll
                    for (int j = 0; j < LANES; j++)
                        take(at[j], total + j, low + j, high + j);
            else
                for (int k = 0; k < count; k++, at += row_stride)
                    for (int j = 0; j < lanes; j++)
                        take(at[j], total + j, low + j, high + j);
            for (int j = 0; j < lanes; j++) {
                out[left + j] = total[j];
                out[columns + left + j] = low[j];
                out[2 * columns + left + j] = high[j];
            }
        }
    else
        for (int j = 0; j < valid; j++) {
            __global const SOURCE *at = in + j * column_stride;
            int k = 0;
            for (int l = 0; l < LANES; l++)
                start(at[0], total + l, low + l, high + l);
            for (; k + LANES <= count; k += LANES)
#pragma unroll
                for (int l = 0; l < LANES; l++)
                    take(at[(k + l) * row_stride], total + l, low + l, high + l);
            for (; k < count; k++)
                take(at[k * row_stride], total, low, high);
            for (int l = 1; l < LANES; l++) {
                total[0] += total[l];
                low[0] = low[l] < low[0] ? low[l] : low[0];
                high[0] = high[l] > high[0] ? high[l] : high[0];
            }
            out[j] = total[0];
            out[columns + j] = low[0];
            out[2 * columns + j] = high[0];
        }
}
