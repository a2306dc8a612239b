/* dot4.cl - C = A B as dot4_cast.cl, row and column held as vectors from the start.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. Right for every local size, as local_column.cl is. Row and column end with zeros up to a multiple of 4.
 *
 * The MQL5 article's eighth step. One idea against dot4_cast.cl: the vectors are put together once a chunk, when row
 * and column are filled, and the inner loop is two vector reads and a dot product. It should win what the casts cost.
 *
 *   CHUNK          elements of a row and of a column held at a time, a multiple of 4; see local_column.cl
 *   BUILT_IN_DOT   1 calls dot(), as the article does; 0 writes the same sum out, which fuses on every compiler
 */
#ifndef CHUNK
#define CHUNK 1024
#endif
#if CHUNK < 4 || CHUNK % 4 != 0
#error "CHUNK must be a multiple of 4"
#endif
#ifndef BUILT_IN_DOT
#define BUILT_IN_DOT 0
#endif
#define REAL4 JOIN(REAL, 4)
#if BUILT_IN_DOT
#define DOT4 dot
#else
#define DOT4(a, b) ((a).s0 * (b).s0 + (a).s1 * (b).s1 + (a).s2 * (b).s2 + (a).s3 * (b).s3)
#endif
/* element k of a vector of the matrices, and zero from `count` on */
#define ELEMENT(from, k, count) ((k) < (count) ? (from)[k] : (REAL)0)
#define GATHER4(from, k, count)                                                                                       \
    (REAL4)(ELEMENT(from, k, count), ELEMENT(from, (k) + 1, count), ELEMENT(from, (k) + 2, count),                    \
            ELEMENT(from, (k) + 3, count))

__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    __local REAL4 column[CHUNK / 4];
    REAL4 row[CHUNK / 4];
    const int r = get_global_id(0);
    for (int begin = 0; begin < inner; begin += CHUNK) {
        const int count = min(CHUNK, inner - begin), vectors = (count + 3) / 4;
        if (r < rows)
            for (int v = 0; v < vectors; v++)
                row[v] = GATHER4(A + r * inner + begin, 4 * v, count);
        for (int c = 0; c < columns; c++) {
            for (int v = get_local_id(0); v < vectors; v += get_local_size(0))
                column[v] = GATHER4(B + c * inner + begin, 4 * v, count);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (r < rows) {
                REAL sum = begin == 0 ? (REAL)0 : C[r * columns + c];
                for (int v = 0; v < vectors; v++)
                    sum += DOT4(row[v], column[v]);
                C[r * columns + c] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
