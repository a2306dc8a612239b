/* capped_squares.cl - sums of squares of centred columns in which no row counts for much, chunk by chunk of rows.
 *
 *   sums[(g * LEVELS + l) * columns + j] = sum over the rows k of chunk g that column j has of min(z(k, j)^2, CAP(l))
 *   z(k, j) = (source[k * row_stride + j * column_stride] - table[j]) * table[width + j],   |z| < 1
 *
 * Whichever rows are taken from a column, so many of its squares are left at least: these sums, less CAP(l) for each of those
 * rows. So one look at the columns tells of all pairs what would take a product of squares with masks. floors.cl chooses a cap.
 *
 * One group of ACROSS x DOWN items does ACROSS columns of a chunk, an item a run of rows; groups are (columns / ACROSS, chunks).
 */
#ifndef ACROSS
#define ACROSS 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef LEVELS
#define LEVELS 6
#endif
#define CAP(l) ((REAL)1 / (16 << 4 * (l)))

__kernel __attribute__((reqd_work_group_size(ACROSS, DOWN, 1)))
void capped_squares(__global const SOURCE *restrict source, __global const SUM *restrict table, __global REAL *restrict sums,
                    const int columns, const int width, const int rows, const int chunk, const long row_stride,
                    const long column_stride)
{
    __local REAL parts[LEVELS][DOWN][ACROSS];
    const int x = get_local_id(0), y = get_local_id(1), j = get_group_id(0) * ACROSS + x, each = (chunk + DOWN - 1) / DOWN;
    const int begin = get_group_id(1) * chunk + y * each, end = min(min(begin + each, rows), (int)(get_group_id(1) + 1) * chunk);
    const SUM origin = j < columns ? table[j] : 0, scale = j < columns ? table[width + j] : 0;
    REAL sum[LEVELS];
#pragma unroll
    for (int l = 0; l < LEVELS; l++)
        sum[l] = 0;
    if (j < columns)
#pragma unroll 8
        for (int k = begin; k < end; k++) {
            const REAL z = (REAL)(((SUM)source[k * row_stride + j * column_stride] - origin) * scale);
            const REAL square = z == z ? z * z : 0;
#pragma unroll
            for (int l = 0; l < LEVELS; l++)
                sum[l] += min(square, CAP(l));
        }
#pragma unroll
    for (int l = 0; l < LEVELS; l++)
        parts[l][y][x] = sum[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (j >= columns)
        return;
    for (int l = y; l < LEVELS; l += DOWN) {
        REAL total = 0;
        for (int i = 0; i < DOWN; i++)
            total += parts[l][i][x];
        sums[(get_group_id(1) * LEVELS + l) * (size_t)columns + j] = total;
    }
}
