/* local_column.cl - C = A B, the group copying each column of B to local memory before its items use it.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[c * inner + k],   r < rows, c < columns, k < inner
 *
 * A and C are row-major, B is column-major; rows * inner, inner * columns and rows * columns are below 2^31, inner at
 * least 1. Right for every local size: an item past the last row copies and waits with its group, and only then does
 * nothing, for a barrier must be met by all.
 *
 * The MQL5 article's sixth step. One idea against private_row.cl: a column is read from global memory once a group
 * and not once an item. It should win where local memory is a memory of its own; on a CPU it is a part of the cache,
 * and what wins there is that the items of a group pass through the same column together.
 *
 *   CHUNK   elements of a row and of a column held at a time; longer ones go in chunks, whose sums are added up in C
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
    __local REAL column[CHUNK];
    REAL row[CHUNK];
    const int r = get_global_id(0);
    for (int begin = 0; begin < inner; begin += CHUNK) {
        const int count = min(CHUNK, inner - begin);
        if (r < rows)
            for (int k = 0; k < count; k++)
                row[k] = A[r * inner + begin + k];
        for (int c = 0; c < columns; c++) {
            for (int k = get_local_id(0); k < count; k += get_local_size(0))
                column[k] = B[c * inner + begin + k];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (r < rows) {
                REAL sum = begin == 0 ? (REAL)0 : C[r * columns + c];
                for (int k = 0; k < count; k++)
                    sum += row[k] * column[k];
                C[r * columns + c] = sum;
            }
            /* nobody may fill the column again before all have used it */
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
