/* found_columns.cl - what is known of each column of a matrix in which values are missing, from what its chunks say.
 *
 *   found[s * columns + j] = sum (s = 0), smallest (1), largest (2) of column j       from moments/columns_squares.cl
 *   rows[j] = the rows that it has, rows[columns + j] = those before the first of them    from presence.cl
 *
 * Of a column without a value smallest and largest are inf and -inf, and all `height` rows come before. One group of
 * ACROSS x DOWN items does ACROSS columns.
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef DOWN
#define DOWN 8
#endif

__kernel __attribute__((reqd_work_group_size(ACROSS, DOWN, 1)))
void found_columns(__global const SUM *restrict parts, __global const uint *restrict bits, __global SUM *restrict found,
                   __global int *restrict rows, const int columns, const int chunks, const int height)
{
    __local int counts[DOWN][ACROSS], leads[DOWN][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), j = get_group_id(0) * ACROSS + x;
    int count = 0, lead = height;

    if (j < columns)
        for (int w = y; w < (height + 31) / 32; w += DOWN) {
            const uint word = bits[(size_t)w * columns + j];
            count += popcount(word);
            if (word)
                lead = min(lead, w * 32 + 31 - (int)clz(word & -word));
        }
    counts[y][x] = count;
    leads[y][x] = lead;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (j >= columns)
        return;
    if (y == 0) {
        for (int i = 1; i < DOWN; i++) {
            count += counts[i][x];
            lead = min(lead, leads[i][x]);
        }
        rows[j] = count;
        rows[columns + j] = lead;
    }
    if (y == DOWN - 1) {
        SUM total = 0, low = INFINITY, high = -INFINITY;
#pragma unroll 4
        for (int c = 0; c < chunks; c++) {
            __global const SUM *part = parts + (size_t)c * 3 * columns + j;
            total += part[0];
            low = part[columns] < low ? part[columns] : low;
            high = part[2 * columns] > high ? part[2 * columns] : high;
        }
        found[j] = total;
        found[columns + j] = low;
        found[2 * columns + j] = high;
    }
}
