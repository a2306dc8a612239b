/* dot4_cast.cl - C = A B as local_column.cl, four products at a time, the vectors put together inside the loop.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. Right for every local size, as local_column.cl is. Row and column end with zeros up to a multiple of 4.
 *
 * The MQL5 article's seventh step. One idea against local_column.cl: dot() of two vectors of four. It should win on
 * devices whose lanes are vectors; the two casts cost eight moves a step, which dot4.cl takes out of the loop.
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

__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    __local REAL column[CHUNK];
    REAL row[CHUNK];
    const int r = get_global_id(0);
    for (int begin = 0; begin < inner; begin += CHUNK) {
        const int count = min(CHUNK, inner - begin), padded = (count + 3) / 4 * 4;
        if (r < rows)
            for (int k = 0; k < padded; k++)
                row[k] = k < count ? A[r * inner + begin + k] : (REAL)0;
        for (int c = 0; c < columns; c++) {
            for (int k = get_local_id(0); k < padded; k += get_local_size(0))
                column[k] = k < count ? B[c * inner + begin + k] : (REAL)0;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (r < rows) {
                REAL sum = begin == 0 ? (REAL)0 : C[r * columns + c];
                for (int k = 0; k < padded; k += 4) {
                    const REAL4 a = (REAL4)(row[k], row[k + 1], row[k + 2], row[k + 3]);
                    const REAL4 b = (REAL4)(column[k], column[k + 1], column[k + 2], column[k + 3]);
                    sum += DOT4(a, b);
                }
                C[r * columns + c] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
