/* pack_int8.cl - centre and scale a matrix on its way into panels of digits, which int8.clh describes.
 *
 *   z(k, j) = (source[(o + k) * inner_stride + j * strip_stride] - origin[j]) * scale[j]     in SUM
 *   X(k, j) = SPAN * z(k, j), rounded to an integer
 *   panels[p * inner_padded * SLICES * PANEL + DIGIT_PLACE(k, j % PANEL, s)] = digit s of X(k, j), j in panel p
 *   found[c * width + j] = sum of z(k, j) over the inner indices k of chunk c: c * chunk <= k < (c + 1) * chunk
 *   found[chunks * width + j], found[(chunks + 1) * width + j] = origin[j], scale[j]
 *
 * where o is the second global offset of the launch, for k < inner and j < strips, and 0 elsewhere, up to inner_padded and a
 * whole last panel; width is that of all panels, and chunks the groups of the second dimension. centre holds `width` origins,
 * then `width` scales, powers of two with |z| < 0.985. A strip whose origin is NaN is all 0 whatever the source holds,
 * and its sums are NaN. With COUNTED, `found` has in place of sums how many |z| are LARGE. A slab after the first has `more`
 * not 0: its sums are added to those that are there. inner_padded and chunk are multiples of SQUARE.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE strips, square by square: reads run along memory, whichever stride is
 * 1. Then an item has 8 inner indices of one strip, so that it writes 8 bytes of each digit, and its neighbour the next 8.
 */
#ifndef SQUARE
#define SQUARE 32
#endif
#ifndef DOWN
#define DOWN 4
#endif
#ifndef PANEL
#define PANEL SQUARE
#endif
#ifndef COUNTED
#define COUNTED 0
#endif
#if PANEL % SQUARE != 0 || SQUARE != 32 || DOWN != 4
#error "SQUARE must be 32, a panel whole squares, and DOWN 4"
#endif
/* The digits of X are those of X + BIAS to the base 256, less 128 each: the top bit of a byte turned. */
#define BIAS (0x80808080808080L >> 8 * (7 - SLICES))

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack(__global const SOURCE *restrict source, __global ulong *restrict panels, __global const SUM *restrict centre,
          __global SUM *restrict found, const int strips, const int inner, const int inner_padded, const int chunk,
          const int more, const long inner_stride, const long strip_stride)
{
    __local SOURCE square[SQUARE][SQUARE + 1];
    __local SUM sums[SQUARE][DOWN];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE;
    const int item = get_local_id(1) * SQUARE + x, octet = item / 2 % 4, own = item / 8 * 2 + item % 2;
    const int turned = strip_stride != 1;
    const SUM origin = centre[first + own], scale = centre[width + first + own] * SPAN;
    const int end = min((int)(get_group_id(1) + 1) * chunk, inner_padded);
    __global const SOURCE *from = source + (long)get_global_offset(1) * inner_stride;
    __global ulong *out = panels + ((size_t)(first / PANEL) * inner_padded * SLICES * PANEL + first % PANEL * 32) / 8 + item;
    SUM sum = 0;

    /* z is SPAN times that of the head, which saves an operation on doubles where those are dear */
    for (int begin = get_group_id(1) * chunk; begin < end; begin += SQUARE) {
        ulong digits[SLICES];
        for (int y = get_local_id(1); y < SQUARE; y += DOWN) {
            const int k = turned ? x : y, j = turned ? y : x;
            if (begin + k < inner && first + j < strips)
                square[k][j] = from[(begin + k) * inner_stride + (first + j) * strip_stride];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int s = 0; s < SLICES; s++)
            digits[s] = 0;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int k = octet * 8 + i, exists = begin + k < inner && first + own < strips && origin == origin;
            const SUM z = exists ? (square[k][own] - origin) * scale : (SUM)0;
            const ulong X = ((long)rint(z) + BIAS) ^ BIAS;
            sum += COUNTED ? (SUM)(z >= (SUM)LARGE * SPAN || z <= -(SUM)LARGE * SPAN) : z;
#pragma unroll
            for (int s = 0; s < SLICES; s++)
                digits[s] |= (X >> 8 * (SLICES - 1 - s) & 255) << 8 * i;
        }
#pragma unroll
        for (int s = 0; s < SLICES; s++)
            out[(size_t)(begin / DEPTH * SLICES + s) * PANEL * DEPTH / 8] = digits[s];
        /* the next square fills local memory that a slower item may still read */
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sums[own][octet] = origin != origin ? origin : COUNTED ? sum : sum / SPAN;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(1) == 0) {
        __global SUM *out = found + (size_t)get_group_id(1) * width + first + x;
        sum = sums[x][0] + sums[x][1] + (sums[x][2] + sums[x][3]);
        *out = more ? *out + sum : sum;
    }
    if (get_group_id(1) == 0 && get_local_id(1) < 2) {
        const size_t row = get_num_groups(1) + get_local_id(1);
        found[row * width + first + x] = centre[get_local_id(1) * width + first + x];
    }
}
