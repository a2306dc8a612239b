/* macro_tile.cl - C = A B by micro-tiles of 4 x 8 elements in registers; the micro-tiles of a group step together.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[k * columns + c],   r < rows, c < columns, k < inner
 *
 * A, B and C are row-major; rows * inner, inner * columns and rows * columns are below 2^31. Item (x, y) computes
 * rows 4 y to 4 y + 3 and columns 8 x to 8 x + 7; any local size. Items at the lower and right edges, and the last
 * inner indices, read element by element.
 *
 * The Adreno article's step. One idea against tiled.cl: no local memory. An element of A serves 8 products and one
 * of B 4 from registers, both come as vectors of four, and a barrier keeps the macro-tile, the micro-tiles of a group,
 * within the same STEP inner indices, so that what one item brings into the cache is still there for the others. It
 * should win wherever registers are many: it is the first rung with far fewer loads than products.
 *
 *   STEP         inner indices between two barriers; a multiple of 4
 *   WHOLE_ROWS   1 where inner and columns are multiples of 4, so that every vector of four starts where one may
 */
#ifndef STEP
#define STEP 64
#endif
#if STEP < 4 || STEP % 4 != 0
#error "STEP must be a multiple of 4"
#endif
#ifndef WHOLE_ROWS
#define WHOLE_ROWS 0
#endif
#define REAL4 JOIN(REAL, 4)
#if WHOLE_ROWS
typedef REAL4 LOADED;
#else
typedef REAL4 __attribute__((aligned(REAL_BITS / 8))) LOADED;
#endif
#define LOAD4(from) (*(__global const LOADED *)(from))
/* element k of a row, and zero from `count` on */
#define ELEMENT(from, k, count) ((k) < (count) ? (from)[k] : (REAL)0)
#define GATHER4(from, k, count)                                                                                       \
    (REAL4)(ELEMENT(from, k, count), ELEMENT(from, (k) + 1, count), ELEMENT(from, (k) + 2, count),                    \
            ELEMENT(from, (k) + 3, count))

/* the 32 products of a column of A with a row of B, added to the sums */
#define ADD_ROW(i, a)                                                                                                 \
    do {                                                                                                              \
        sum[i][0] = (REAL4)(a) * b0 + sum[i][0];                                                                      \
        sum[i][1] = (REAL4)(a) * b1 + sum[i][1];                                                                      \
    } while (0)
#define ADD(first, second, a0, a1, a2, a3)                                                                            \
    do {                                                                                                              \
        const REAL4 b0 = first, b1 = second;                                                                          \
        ADD_ROW(0, a0);                                                                                               \
        ADD_ROW(1, a1);                                                                                               \
        ADD_ROW(2, a2);                                                                                               \
        ADD_ROW(3, a3);                                                                                               \
    } while (0)

__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(1) * 4, c = get_global_id(0) * 8;
    const int height = min(4, rows - r), width = min(8, columns - c);
    /* past the last row that row is read again, and its sums are not stored */
    __global const REAL *p0 = A + min(r, rows - 1) * inner, *p1 = A + min(r + 1, rows - 1) * inner;
    __global const REAL *p2 = A + min(r + 2, rows - 1) * inner, *p3 = A + min(r + 3, rows - 1) * inner;
    REAL4 sum[4][2];
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i][0] = sum[i][1] = (REAL4)((REAL)0);
    for (int begin = 0; begin < inner; begin += STEP) {
        const int end = min(begin + STEP, inner);
        int k = begin;
        if (width == 8)
            for (; k + 4 <= end; k += 4) {
                __global const REAL *b = B + k * columns + c;
                const REAL4 a0 = LOAD4(p0 + k), a1 = LOAD4(p1 + k), a2 = LOAD4(p2 + k), a3 = LOAD4(p3 + k);
                ADD(LOAD4(b), LOAD4(b + 4), a0.s0, a1.s0, a2.s0, a3.s0);
                ADD(LOAD4(b + columns), LOAD4(b + columns + 4), a0.s1, a1.s1, a2.s1, a3.s1);
                ADD(LOAD4(b + 2 * columns), LOAD4(b + 2 * columns + 4), a0.s2, a1.s2, a2.s2, a3.s2);
                ADD(LOAD4(b + 3 * columns), LOAD4(b + 3 * columns + 4), a0.s3, a1.s3, a2.s3, a3.s3);
            }
        for (; k < end; k++) {
            __global const REAL *b = B + k * columns + c;
            ADD(GATHER4(b, 0, width), GATHER4(b, 4, width), p0[k], p1[k], p2[k], p3[k]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (i < height && j < width)
                C[(r + i) * columns + c + j] = ((REAL *)&sum[i][j / 4])[j % 4];
}
