/* pack_centred_halves.cl - centre and scale a matrix on its way into panels of halves as split_panels.clh describes them.
 *
 *   hi(k, j) + lo(k, j) = SPLIT_SCALE * z(k, j), that in REAL            as halves.clh cuts numbers
 *   half k % 8 of unit ((p * rows_padded / DEPTH + k / DEPTH) * PLANES + part) * PLANE_UNITS + SPLIT_UNIT(c, k % DEPTH / 8)
 *       = part (0: hi, 1: lo) of row k and column j = 64 * p + c
 *
 * For z see centring.clh, |z| < 1; packing.clh says how a group goes about it, and pack_centred_squares.cl what `found` is.
 * rows_padded is a multiple of DEPTH, chunk one of SPAN.
 *
 * The halves of SPAN rows are turned in local memory, so that neighbours write 16 bytes each of one column.
 */
#ifndef PANEL
#define PANEL 64
#endif
#if PANEL != 64
#error "panels of halves are 64 columns wide"
#endif
/* The words of hi (x) and of lo (y) of two numbers, the first in the low half of each. That lo is what hi left in REAL costs
 * 2^-24 of a number and saves half the time; so do the instructions that NVIDIA's compiler does not find by itself. */
static inline uint2 words_of(const REAL first, const REAL second)
{
#ifdef __NV_CL_C_VERSION
    uint2 words;
    REAL first_hi, second_hi;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words.x) : "f"(second), "f"(first));
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(first_hi), "=f"(second_hi) : "r"(words.x));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words.y) : "f"(second - second_hi), "f"(first - first_hi));
    return words;
#else
    const uint a = to_half(first), b = to_half(second);
    return (uint2)(a | b << 16, to_half(first - value_of(a)) | to_half(second - value_of(b)) << 16);
#endif
}

#if DEPTH % SPAN != 0
#error "a stage must be whole spans"
#endif
#define PAIRS (SPAN / 2)
#define OCTETS (SPAN / 8)

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(PACK_ARGUMENTS(uint4))
{
    PACK_MEMORY(square, sums);
    __local uint halves[PLANES][SQUARE][PAIRS + 1];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE;
    __global uint4 *out = panels + (size_t)(first / 64) * (rows_padded / DEPTH) * PLANES * PLANE_UNITS;
    struct packing p = begin_packing(source, panels, table, found, columns, rows, rows_padded, chunk, measured, count, more,
                                     row_stride, column_stride, square, sums);

    for (int at = p.begin; at < p.end; at += SPAN) {
        SOURCE now[EACH];
        next_span(now, &p, at, square);
#pragma unroll
        for (int i = 0; i < EACH; i += 2) {
            const int k = at + ROW(i);
            const REAL upper = k < rows ? taken(now[i], &p.centre, &p.sum) : (REAL)0;
            const REAL lower = k + 1 < rows ? taken(now[i + 1], &p.centre, &p.sum) : (REAL)0;
            const uint2 words = words_of(upper * SPLIT_SCALE, lower * SPLIT_SCALE);
            halves[0][x][ROW(i) / 2] = words.x;
            if (PLANES == 2)
                halves[PLANES - 1][x][ROW(i) / 2] = words.y;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = get_local_id(1) * SQUARE + x; n < PLANES * SQUARE * OCTETS; n += DOWN * SQUARE) {
            const int part = n / (SQUARE * OCTETS), column = n / OCTETS % SQUARE, octet = n % OCTETS;
            __local const uint *four = halves[part][column] + 4 * octet;
            out[(at / DEPTH * PLANES + part) * PLANE_UNITS + SPLIT_UNIT(first % 64 + column, at % DEPTH / 8 + octet)] =
                (uint4)(four[0], four[1], four[2], four[3]);
        }
        /* what comes next fills local memory that a slower item may still read */
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    put_residue(found, p.sum, more, sums);
}
