/* pack_squares.cl - copy a matrix into panels as pack.cl does, on a device with local memory.
 *
 *   panels[(p * inner_padded + k) * PANEL + j] = source[k * inner_stride + (p * PANEL + j) * strip_stride]
 *
 * for k < inner and p * PANEL + j < strips, and 0 elsewhere, up to inner_padded and a whole last panel. A launch whose
 * second global offset is o packs from inner index o of the source on.
 *
 * One group of SQUARE x DOWN items does SQUARE strips and SQUARE inner indices: many small groups, so that a matrix of
 * a few hundred rows already fills a GPU. Reads run along memory, whichever stride is 1, and writes along a panel; the
 * turn happens in local memory, whose rows are one element longer than a square so that the items of a column meet
 * different banks.
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

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack(__global const REAL *restrict source, __global REAL *restrict panels, const int strips, const int inner,
          const int inner_padded, const long inner_stride, const long strip_stride)
{
    __local REAL square[SQUARE][SQUARE + 1];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, begin = get_group_id(1) * SQUARE;
    const int turned = strip_stride != 1;
    __global const REAL *from = source + (long)get_global_offset(1) * inner_stride;

    for (int y = get_local_id(1); y < SQUARE; y += DOWN) {
        const int k = turned ? x : y, j = turned ? y : x;
        const int inside = begin + k < inner && first + j < strips;
        square[k][j] = inside ? from[(begin + k) * inner_stride + (first + j) * strip_stride] : (REAL)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    __global REAL *out = panels + ((size_t)(first / PANEL) * inner_padded + begin) * PANEL + first % PANEL;
    for (int y = get_local_id(1); y < SQUARE; y += DOWN)
        if (begin + y < inner_padded)
            out[(size_t)y * PANEL + x] = square[y][x];
}
