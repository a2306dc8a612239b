/* pack.cl - copy a matrix into panels: strips of PANEL columns, each stored inner index by inner index.
 *
 *   panels[(p * inner_padded + k) * PANEL + j] = source[k * inner_stride + (p * PANEL + j) * strip_stride]
 *
 * for k < inner and p * PANEL + j < strips, and 0 elsewhere, up to inner_padded and a whole last panel.
 * With the two strides exchanged it packs the transpose, so no matrix is ever transposed on the host:
 * the left operand of A B has inner_stride 1 and strip_stride lda, the right one ldb and 1.
 *
 * A launch whose second global offset is o packs from inner index o of the source on, so that a slab of many rows is
 * packed where it lies.
 *
 * For CPU devices: one work-item a panel and INNER_STEP inner indices, since a panel's row is a few vectors. A device
 * with local memory packs with pack_squares.cl.
 */
#ifndef PANEL
#define PANEL 8
#endif
#ifndef INNER_STEP
#define INNER_STEP 128
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack(__global const REAL *restrict source, __global REAL *restrict panels, const int strips, const int inner,
          const int inner_padded, const long inner_stride, const long strip_stride)
{
    const int p = get_group_id(0);
    const int begin = get_group_id(1) * INNER_STEP;
    const int end = min(begin + INNER_STEP, inner_padded);
    const int full = min(end, inner);
    const int valid = min(PANEL, strips - p * PANEL);
    __global REAL *out = panels + ((size_t)p * inner_padded + begin) * PANEL;
    __global const REAL *in = source + ((long)get_global_offset(1) + begin) * inner_stride + (long)p * PANEL * strip_stride;

    int k = begin;
    if (valid == PANEL && strip_stride == 1)
        for (; k < full; k++, out += PANEL, in += inner_stride)
            for (int j = 0; j < PANEL; j++)
                out[j] = in[j];
    else if (valid == PANEL)
        for (; k < full; k++, out += PANEL, in += inner_stride)
            for (int j = 0; j < PANEL; j++)
                out[j] = in[j * strip_stride];
    else
        for (; k < full; k++, out += PANEL, in += inner_stride)
            for (int j = 0; j < PANEL; j++)
                out[j] = j < valid ? in[j * strip_stride] : (REAL)0;
    for (; k < end; k++, out += PANEL)
        for (int j = 0; j < PANEL; j++)
            out[j] = (REAL)0;
}
