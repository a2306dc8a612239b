/* dot8.cl - C = A B as dot4.cl, with vectors of eight: two dot products of four a step.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. Right for every local size, as local_column.cl is. Row and column end with zeros up to a multiple of 8.
 *
 * The MQL5 article's last step and its best figure. One idea against dot4.cl: half the steps, and two sums that do not
 * wait for each other, so it should win where latency is the limit. A vector of eight is two of four here, for there is
 * no dot() of eight. What the device prefers is CL_DEVICE_PREFERRED_VECTOR_WIDTH, which the benchmark shows beside.
 *
 *   CHUNK          elements of a row and of a column held at a time, a multiple of 8; see local_column.cl
 *   BUILT_IN_DOT   1 calls dot(), as the article does; 0 writes the same sum out, which fuses on every compiler
 */
#ifndef CHUNK
#define CHUNK 1024
#endif
#if CHUNK < 8 || CHUNK % 8 != 0
#error "CHUNK must be a multiple of 8"
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
        const int count = min(CHUNK, inner - begin), halves = (count + 7) / 8 * 2;
        if (r < rows)
            for (int v = 0; v < halves; v++)
                row[v] = GATHER4(A + r * inner + begin, 4 * v, count);
        for (int c = 0; c < columns; c++) {
            for (int v = get_local_id(0); v < halves; v += get_local_size(0))
                column[v] = GATHER4(B + c * inner + begin, 4 * v, count);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (r < rows) {
                REAL low = begin == 0 ? (REAL)0 : C[r * columns + c], high = (REAL)0;
                for (int v = 0; v < halves; v += 2) {
                    low += DOT4(row[v], column[v]);
                    high += DOT4(row[v + 1], column[v + 1]);
                }
                C[r * columns + c] = low + high;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
