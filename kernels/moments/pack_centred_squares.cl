/* pack_centred_squares.cl - centre and scale a matrix on its way into panels as pack_centred.cl does, with local memory.
 *
 *   z(k, j) = (source[(o + k) * row_stride + j * column_stride] - origin[j]) * scale[j]     in SUM
 *   panels[(p * rows_padded + k) * PANEL + j] = z(k, p * PANEL + j)                         rounded to REAL
 *   residue[(first_chunk + c) * width + j] = sum of z(k, j) over the rows k of chunk c: c * chunk <= k < (c + 1) * chunk
 *
 * with the meanings of pack_centred.cl, MISSING among them; chunk is a multiple of SQUARE.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE columns, square by square: reads run along memory, whichever stride
 * is 1, and writes along a panel, where an item always has the same column and so keeps its origin, scale and sum.
 */
#ifndef SQUARE
#define SQUARE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef PANEL
#define PANEL SQUARE
#endif
#if PANEL % SQUARE != 0
#error "a panel must be whole squares"
#endif

static inline __attribute__((always_inline)) SUM
centred(const SUM x, const SUM origin, const SUM scale)
{
    const SUM z = (x - origin) * scale;
    return MISSING ? (z == z ? (SUM)(REAL)z : (SUM)0) : z;
}

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(__global const SOURCE *restrict source, __global REAL *restrict panels,
                  __global const SUM *restrict centre, __global SUM *restrict residue, const int columns, const int rows,
                  const int rows_padded, const int chunk, const int first_chunk, const long row_stride,
                  const long column_stride)
{
    __local SOURCE square[SQUARE][SQUARE + 1];
    __local SUM sums[DOWN][SQUARE];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE;
    const int turned = column_stride != 1;
    const SUM origin = centre[first + x], scale = centre[width + first + x];
    const int end = min((int)(get_group_id(1) + 1) * chunk, rows_padded);
    __global const SOURCE *from = source + (long)get_global_offset(1) * row_stride;
    SUM sum = 0;

    for (int begin = get_group_id(1) * chunk; begin < end; begin += SQUARE) {
        for (int y = get_local_id(1); y < SQUARE; y += DOWN) {
            const int k = turned ? x : y, j = turned ? y : x;
            if (begin + k < rows && first + j < columns)
                square[k][j] = from[(begin + k) * row_stride + (first + j) * column_stride];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __global REAL *out = panels + ((size_t)(first / PANEL) * rows_padded + begin) * PANEL + first % PANEL;
        for (int y = get_local_id(1); y < SQUARE; y += DOWN) {
            const int inside = begin + y < rows && first + x < columns;
            const SUM z = inside ? centred(square[y][x], origin, scale) : (SUM)0;
            sum += z;
            if (begin + y < rows_padded)
                out[(size_t)y * PANEL + PLACE(y, x)] = z;
        }
        /* the next square fills local memory that a slower item may still read */
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sums[get_local_id(1)][x] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(1) == 0) {
        for (int i = 1; i < DOWN; i++)
            sum += sums[i][x];
        residue[(size_t)(first_chunk + get_group_id(1)) * width + first + x] = sum;
    }
}
