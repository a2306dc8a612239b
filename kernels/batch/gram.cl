/* gram.cl - C = X'X, or the co-moments of the columns, of each matrix of a batch on a CPU device; one work-item a group.
 *
 *   X(m, k, j) = source[begin + m * matrix_step + k * row_step + j * column_step],   m < count, k < rows, j < columns
 *   C[(m * columns + r) * columns + c] = sum over k of z(k, r) * z(k, c);   symmetric bit for bit
 *
 * z is X itself, or if CENTRED the columns as centre.clh centres them, and C less what rounding left in the mean of z.
 * Matrices may overlap in memory, as those of moving windows do.
 *
 * A matrix is small: it, its panels and its answer lie in the cache of one core. So a group does `each` matrices from first
 * to last, and nothing of one matrix depends on which others there are. `deep` rows at a time are centred and packed into
 * panels of MICRO_COLUMNS columns; then micro-tiles of packed.clh read both operands from there, those that touch the upper
 * triangle, which is mirrored at the end. What is padded is zero and never stored.
 *
 *   CENTRED   1: `known` (centre.clh) is written, and products are taken of centred columns
 *   panels    local if RIGHT_LOCAL, else scratch: padded columns x deep
 *   table     local, if CENTRED: origins, scales and sums of z, padded columns each
 */
#ifndef CENTRED
#define CENTRED 0
#endif
/* columns are padded to whole panels and whole micro-tiles, both powers of two */
#define WHOLE (MICRO_COLUMNS > MICRO_ROWS ? MICRO_COLUMNS : MICRO_ROWS)
#if WHOLE & (WHOLE - 1) || LEFT_LOCAL != RIGHT_LOCAL
#error "MICRO_ROWS and MICRO_COLUMNS must be powers of two, and both operands lie in the same memory"
#endif
#if CENTRED && SUM_BITS != 64
#error "CENTRED needs SUM_BITS 64"
#endif
#define INLINE static inline __attribute__((always_inline))

#if CENTRED
/* Find how the `valid` columns of a panel are centred; columns behind the last are not looked at. */
INLINE void measure(__global const SOURCE *at, __global SUM *known, __local SUM *table, const int rows, const int columns,
                    const int width, const int valid, const long row_step, const long column_step)
{
    SUM total[MICRO_COLUMNS], low[MICRO_COLUMNS], high[MICRO_COLUMNS];
#define TAKE(j, from) \
    do { \
        const SUM x_ = (from); \
        total[j] += x_; \
        low[j] = x_ < low[j] ? x_ : low[j]; \
        high[j] = x_ > high[j] ? x_ : high[j]; \
    } while (0)
    for (int j = 0; j < valid; j++) {
        total[j] = 0;
        low[j] = high[j] = at[j * column_step];
    }
    if (valid == MICRO_COLUMNS && column_step == 1)
        for (int k = 0; k < rows; k++, at += row_step)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; j++)
                TAKE(j, at[j]);
    else
        for (int k = 0; k < rows; k++, at += row_step)
            for (int j = 0; j < valid; j++)
                TAKE(j, at[j * column_step]);
    for (int j = 0; j < valid; j++) {
        const int reach = REAL_BITS == 64 ? 0 : reach_of(high[j] - low[j]);
        const int ordinary = is_ordinary(total[j], low[j], high[j]);
        table[j] = origin_of(total[j], low[j], high[j], rows);
        table[width + j] = scale_of(ordinary ? reach : 0);
        table[2 * width + j] = ordinary ? (SUM)0 : (SUM)NAN;
        known[j] = table[j];
        known[columns + j] = reach;
    }
}
#endif

/* Pack `count` rows of a panel, of which `valid` columns exist. */
INLINE void pack(__global const SOURCE *at, RIGHT REAL *panel, __local SUM *table, const int count, const int width,
                 const int valid, const long row_step, const long column_step)
{
#if CENTRED
    SUM origin[MICRO_COLUMNS], scale[MICRO_COLUMNS], sum[MICRO_COLUMNS];
    for (int j = 0; j < valid; j++) {
        origin[j] = table[j];
        scale[j] = table[width + j];
        sum[j] = table[2 * width + j];
    }
#define PUT(j, x) \
    do { \
        const SUM z_ = ((SUM)(x) - origin[j]) * scale[j]; \
        sum[j] += z_; \
        panel[j] = (REAL)z_; \
    } while (0)
#else
#define PUT(j, x) panel[j] = (x)
#endif
    if (valid == MICRO_COLUMNS && column_step == 1)
        for (int k = 0; k < count; k++, at += row_step, panel += MICRO_COLUMNS)
#pragma unroll
            for (int j = 0; j < MICRO_COLUMNS; j++)
                PUT(j, at[j]);
    else
        for (int k = 0; k < count; k++, at += row_step, panel += MICRO_COLUMNS) {
            for (int j = 0; j < valid; j++)
                PUT(j, at[j * column_step]);
            for (int j = valid; j < MICRO_COLUMNS; j++)
                panel[j] = 0;
        }
#if CENTRED
    for (int j = 0; j < valid; j++)
        table[2 * width + j] = sum[j];
#endif
}

/* Take out what the means of z, table[2 * width ...], put into the upper triangle, and write the lower one. */
INLINE void finish(__global SUM *C, __local SUM *table, const int rows, const int columns, const int width)
{
    for (int r = 0; r < columns; r++) {
#if CENTRED
        const SUM mean = table[2 * width + r];
        for (int c = r; c < columns; c++)
            C[r * columns + c] -= mean * table[2 * width + c] * rows;
#endif
        for (int c = r + 1; c < columns; c++)
            C[c * columns + r] = C[r * columns + c];
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gram(__global const SOURCE *restrict source, __global SUM *restrict C,
#if CENTRED
          __global SUM *restrict known, __local SUM *restrict table,
#endif
          RIGHT REAL *restrict panels, const int count, const int each, const int rows, const int columns,
          const int deep, const long begin, const long matrix_step, const long row_step, const long column_step)
{
    const int width = (columns + WHOLE - 1) / WHOLE * WHOLE;
    const int first = get_group_id(0) * each, last = min(first + each, count);
#if !CENTRED
    __local SUM *const table = 0;
#endif

    for (int m = first; m < last; m++) {
        __global const SOURCE *const x = source + begin + m * matrix_step;
        __global SUM *const result = C + (size_t)m * columns * columns;
#if CENTRED
        __global SUM *const mine = known + (size_t)m * 3 * columns;
        for (int c = 0; c < columns; c += MICRO_COLUMNS)
            measure(x + c * column_step, mine + c, table + c, rows, columns, width, min(MICRO_COLUMNS, columns - c),
                    row_step, column_step);
#endif
        for (int k = 0; k < rows; k += deep) {
            const int here = min(deep, rows - k);
            for (int c = 0; c < width; c += MICRO_COLUMNS)
                pack(x + k * row_step + c * column_step, panels + c * deep, table + c, here, width,
                     min(max(columns - c, 0), MICRO_COLUMNS), row_step, column_step);
            for (int c = 0; c < columns; c += MICRO_COLUMNS) {
                const int below = min(columns, c + MICRO_COLUMNS);
                for (int r = 0; r < below; r += MICRO_ROWS) {
                    VECTOR sum[MICRO_ROWS][VECTORS];
                    LEFT const REAL *row[MICRO_ROWS];
#pragma unroll
                    for (int i = 0; i < MICRO_ROWS; i++)
                        row[i] = panels + (r + i) / MICRO_COLUMNS * MICRO_COLUMNS * deep + (r + i) % MICRO_COLUMNS;
                    micro_tile(row, MICRO_COLUMNS, panels + c * deep, here, sum);
                    store_tile(result + r * columns + c, columns, sum, min(MICRO_ROWS, columns - r),
                               min(MICRO_COLUMNS, columns - c), k == 0);
                }
            }
        }
#if CENTRED
        for (int j = 0; j < columns; j++)
            mine[2 * columns + j] = table[2 * width + j] = table[2 * width + j] / rows;
#endif
        finish(result, table, rows, columns, width);
    }
}
