/* texture.cl - C = A B with the second matrix read as an image, the first as a buffer.
 *
 *   C[r * columns + c] = sum over k of A[r * inner + k] * B[k, c],   r < rows, c < columns, k < inner
 *
 * A and C are row-major; rows * inner and rows * columns are below 2^31. B is an image of 16-byte texels, CL_RGBA with
 * CL_UNSIGNED_INT32, whose texel (x, k) holds the elements (k, x * TEXEL) and on of B, filled up with zeros: four in
 * single precision, two in double. So one text serves both types, bit for bit, with no filter in between. Item (x, y)
 * computes ITEM_ROWS rows and the columns of one texel; any local size.
 *
 * The Adreno article's step. One idea against macro_tile.cl: the texture unit has a cache and a path to memory of its
 * own, so the two matrices come by two roads. It should win where buffers pass that cache by, as on Adreno. CPU
 * runtimes emulate images with a call a read.
 *
 *   ITEM_ROWS   rows of C of one item, which share each texel that it reads
 */
#ifndef ITEM_ROWS
#define ITEM_ROWS 8
#endif
#define TEXEL (128 / REAL_BITS)
#if REAL_BITS == 64
#define TEXEL_REALS JOIN(REAL, 2)
#else
#define TEXEL_REALS JOIN(REAL, 4)
#endif

__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;

__kernel void multiply(__global const REAL *A, __read_only image2d_t B, __global REAL *C, const int rows,
                       const int inner, const int columns)
{
    const int x = get_global_id(0), r = get_global_id(1) * ITEM_ROWS, c = x * TEXEL;
    if (r >= rows || c >= columns)
        return;
    TEXEL_REALS sum[ITEM_ROWS];
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i++)
        sum[i] = (TEXEL_REALS)((REAL)0);
    for (int k = 0; k < inner; k++) {
        uint4 texel = read_imageui(B, exact, (int2)(x, k));
        const TEXEL_REALS b = *(TEXEL_REALS *)&texel;
#pragma unroll
        for (int i = 0; i < ITEM_ROWS; i++)
            /* past the last row that row is read again, and its sum is not stored */
            sum[i] = (TEXEL_REALS)(A[min(r + i, rows - 1) * inner + k]) * b + sum[i];
    }
    for (int i = 0; i < min(ITEM_ROWS, rows - r); i++)
        for (int j = 0; j < min(TEXEL, columns - c); j++)
            C[(r + i) * columns + c + j] = ((REAL *)&sum[i])[j];
}
