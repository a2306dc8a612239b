/* private_row.cl - C = A B, each item with its row of A copied to private memory first.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. Any local size; items past the last row do nothing.
 *
 * The MQL5 article's fifth step. One idea against row_per_item.cl: the row is read from global memory once and not
 * once a column. It should win where private memory is nearer than the cache. A thousand elements fit no register
 * file, though: a GPU keeps them in its global memory, a CPU on the stack, where its cache held them before.
 *
 *   CHUNK   elements of the row held at a time; a longer row goes in chunks, whose sums are added up in C
 */
#ifndef CHUNK
#define CHUNK 1024
#endif
#if CHUNK < 1
#error "CHUNK must be at least 1"
#endif

__kernel void multiply(__global const REAL *A, __global const REAL *B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int r = get_global_id(0);
    if (r >= rows)
        return;
    REAL row[CHUNK];
    for (int begin = 0; begin < inner; begin += CHUNK) {
        const int count = min(CHUNK, inner - begin);
        for (int k = 0; k < count; k++)
            row[k] = A[r * inner + begin + k];
        for (int c = 0; c < columns; c++) {
            REAL sum = begin == 0 ? (REAL)0 : C[r * columns + c];
            for (int k = 0; k < count; k++)
                sum += row[k] * B[c * inner + begin + k];
            C[r * columns + c] = sum;
        }
    }
}
