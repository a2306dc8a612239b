/* pack_centred.cl - centre and scale a matrix on its way into panels, which are laid out as by multiply/pack.cl.
 *
 *   z(k, j) = (source[(o + k) * row_stride + j * column_stride] - origin[j]) * scale[j]     in SUM
 *   panels[(p * rows_padded + k) * PANEL + j] = z(k, p * PANEL + j)                         rounded to REAL
 *   found[c * width + j] = sum of z(k, j) over the rows k of chunk c: c * chunk <= k < (c + 1) * chunk
 *   found[chunks * width + j], found[(chunks + 1) * width + j] = origin and scale of column j
 *
 * where o is the second global offset of the launch, for k < rows and columns that exist, and 0 elsewhere, up to
 * rows_padded and a whole last panel. A slab of rows after the first has `more` not 0: its sums are added to those that are
 * there. They tell what the rounding of the origin left in the mean. width is that of all panels; centre holds `width`
 * origins, then `width` scales, powers of two, so that the product is exact and no compiler's fused operation changes a bit.
 *
 * If MISSING, z is 0 where the source is NaN, and the sums are those of z as it is rounded to REAL.
 *
 * For CPU devices: one work-item a panel and a chunk of rows. A device with local memory takes pack_centred_squares.cl.
 */
#ifndef PANEL
#define PANEL 8
#endif

static inline __attribute__((always_inline)) SUM
centred(const SUM x, const SUM origin, const SUM scale)
{
    const SUM z = (x - origin) * scale;
    return MISSING ? (z == z ? (SUM)(REAL)z : (SUM)0) : z;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack_centred(__global const SOURCE *restrict source, __global REAL *restrict panels,
                  __global const SUM *restrict centre, __global SUM *restrict found, const int columns, const int rows,
                  const int rows_padded, const int chunk, const int more, const long row_stride,
                  const long column_stride)
{
    const int p = get_group_id(0), width = get_num_groups(0) * PANEL;
    const int begin = get_group_id(1) * chunk;
    const int end = min(begin + chunk, rows_padded);
    const int full = min(end, rows);
    const int valid = min(PANEL, columns - p * PANEL);
    __global REAL *out = panels + ((size_t)p * rows_padded + begin) * PANEL;
    __global const SOURCE *in = source + ((long)get_global_offset(1) + begin) * row_stride + (long)p * PANEL * column_stride;
    __global SUM *left = found + (size_t)get_group_id(1) * width + p * PANEL;
    SUM origin[PANEL], scale[PANEL], sum[PANEL];
    for (int j = 0; j < PANEL; j++) {
        origin[j] = centre[p * PANEL + j];
        scale[j] = centre[width + p * PANEL + j];
        sum[j] = 0;
    }

    int k = begin;
    if (valid == PANEL && column_stride == 1)
        for (; k < full; k++, out += PANEL, in += row_stride)
#pragma unroll
            for (int j = 0; j < PANEL; j++) {
                const SUM z = centred(in[j], origin[j], scale[j]);
                sum[j] += z;
                out[j] = z;
            }
    else if (valid == PANEL)
        for (; k < full; k++, out += PANEL, in += row_stride)
#pragma unroll
            for (int j = 0; j < PANEL; j++) {
                const SUM z = centred(in[j * column_stride], origin[j], scale[j]);
                sum[j] += z;
                out[j] = z;
            }
    else
        for (; k < full; k++, out += PANEL, in += row_stride)
            for (int j = 0; j < PANEL; j++) {
                const SUM z = j < valid ? centred(in[j * column_stride], origin[j], scale[j]) : (SUM)0;
                sum[j] += z;
                out[j] = z;
            }
    for (; k < end; k++, out += PANEL)
        for (int j = 0; j < PANEL; j++)
            out[j] = (REAL)0;
    for (int j = 0; j < PANEL; j++)
        left[j] = more ? left[j] + sum[j] : sum[j];
    if (get_group_id(1) == 0 && !more)
        for (int j = 0; j < PANEL; j++) {
            left[get_num_groups(1) * width + j] = origin[j];
            left[(get_num_groups(1) + 1) * width + j] = scale[j];
        }
}
