/* packed.cl - C = A B on a CPU device in one launch; one work-item a group.
 *
 *   C[r * stride + c] = sum over k of A[r * row_step + k * left_step] * B[k * right_step + c * column_step]
 *
 * for r < rows, c < columns, k < inner. A group does `chunk` rows of one strip of MICRO_COLUMNS columns. It packs its
 * strip of B, at most STRIP_INNER inner indices at a time, which then stays in cache, and takes all its micro-tiles
 * from it. A is read where it lies, in either order, since a micro-tile takes single elements of it. Every element of B
 * is packed once a chunk, beside `chunk` multiplications; and no other launch is waited for, which for small matrices
 * took longer than the product.
 *
 * Groups share nothing: `strip` is memory of the group's own for min(inner, STRIP_INNER) * MICRO_COLUMNS elements, local
 * memory if RIGHT_LOCAL, which a processor's runtime gives each thread once, so that it is in cache for the next group too.
 * Groups of one chunk follow each other, strip by strip, so that its rows of A stay in cache too. If SLICED, slice s of
 * the inner indices, of whole BLOCK_INNER, is summed into C + s * rows * stride (common.clh).
 */

/* Inner indices whose squares of four are turned column by column: the strip's rows that are written stay in cache,
 * and a column is read as one stream. */
#define TURNED 64

/* Four elements, wherever they lie. */
#define FOUR JOIN(REAL, 4)
typedef FOUR LOOSE_FOUR __attribute__((aligned(REAL_BITS / 8)));

/* As pack_strip, for B that lies column by column: squares of four are turned in registers, the rest one by one. */
static inline void turn_strip(__global const REAL *B, RIGHT REAL *strip, const int count, const int valid,
                              const long right_step, const long column_step)
{
    const int squares = right_step == 1 ? count / 4 * 4 : 0, wide = valid / 4 * 4;
    for (int begin = 0; begin < squares; begin += TURNED)
        for (int j = 0; j < wide; j += 4)
            for (int k = begin; k < min(begin + TURNED, squares); k += 4) {
                __global const REAL *in = B + k + j * column_step;
                const FOUR a = *(__global const LOOSE_FOUR *)in;
                const FOUR b = *(__global const LOOSE_FOUR *)(in + column_step);
                const FOUR c = *(__global const LOOSE_FOUR *)(in + 2 * column_step);
                const FOUR d = *(__global const LOOSE_FOUR *)(in + 3 * column_step);
                RIGHT FOUR *out = (RIGHT FOUR *)(strip + k * MICRO_COLUMNS + j);
                out[0] = (FOUR)(a.x, b.x, c.x, d.x);
                out[MICRO_COLUMNS / 4] = (FOUR)(a.y, b.y, c.y, d.y);
                out[2 * (MICRO_COLUMNS / 4)] = (FOUR)(a.z, b.z, c.z, d.z);
                out[3 * (MICRO_COLUMNS / 4)] = (FOUR)(a.w, b.w, c.w, d.w);
            }
    for (int k = 0; k < count; k++)
        for (int j = k < squares ? wide : 0; j < valid; j++)
            strip[k * MICRO_COLUMNS + j] = B[k * right_step + j * column_step];
}

/* strip[k, j] = B[k, j] for j < valid, and 0 up to MICRO_COLUMNS, for k < count */
static inline void pack_strip(__global const REAL *B, RIGHT REAL *strip, const int count, const int valid,
                              const long right_step, const long column_step)
{
    if (valid < MICRO_COLUMNS)
        for (int k = 0; k < count; k++)
            for (int j = valid; j < MICRO_COLUMNS; j++)
                strip[k * MICRO_COLUMNS + j] = (REAL)0;
    if (column_step == 1 && valid == MICRO_COLUMNS)
        for (int k = 0; k < count; k++)
            for (int j = 0; j < MICRO_COLUMNS; j++)
                strip[k * MICRO_COLUMNS + j] = B[k * right_step + j];
    else
        turn_strip(B, strip, count, valid, right_step, column_step);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void multiply(__global const REAL *restrict A, __global const REAL *restrict B, RIGHT REAL *restrict strip,
              __global SUM *restrict C, const int rows, const int columns, const int inner, const int stride,
              const int chunk, const long row_step, const long left_step, const long right_step, const long column_step)
{
    const int across = (columns + MICRO_COLUMNS - 1) / MICRO_COLUMNS;
    const int c = get_group_id(0) % across * MICRO_COLUMNS;
    const int row_begin = get_group_id(0) / across * chunk;
    const int row_end = min(row_begin + chunk, rows);
    const int valid = min(MICRO_COLUMNS, columns - c);
    const int begin = SLICE_BEGIN(inner, BLOCK_INNER), end = SLICE_END(inner, BLOCK_INNER);
    const int blocks = (end - begin + STRIP_INNER - 1) / STRIP_INNER, deep = (end - begin + blocks - 1) / blocks;

    C += SLICE_RESULT((size_t)rows * stride);
    for (int k = begin; k < end; k += deep) {
        const int count = min(deep, end - k);
        pack_strip(B + k * right_step + c * column_step, strip, count, valid, right_step, column_step);
        for (int r = row_begin; r < row_end; r += MICRO_ROWS) {
            const int here = min(MICRO_ROWS, row_end - r);
            VECTOR sum[MICRO_ROWS][VECTORS];
            __global const REAL *row[MICRO_ROWS];
            /* rows behind the last are the last again: nothing outside A is read, and their sums are not stored */
#pragma unroll
            for (int i = 0; i < MICRO_ROWS; i++)
                row[i] = A + (r + min(i, here - 1)) * row_step + k * left_step;
            micro_tile(row, left_step, strip, count, sum);
            store_tile(C + (size_t)r * stride + c, stride, sum, here, valid, k == begin);
        }
    }
}
