/* infinite_strips.cl - what strips that hold an inf make of C = A B, after a product in halves, which reach no inf.
 *
 *   C[r * stride + c] = sum over k of A[r, k] * B[k, c]     where row r of A or column c of B holds an inf
 *   A[r, k] = left[k * left_inner + r * left_strip],  B[k, c] = right[k * right_inner + c * right_strip]
 *
 * The largest of each row of A and column of B (largest.cl, halves.clh) tells which those are; where it is NaN, so is the
 * product already. Such sums are inf or NaN, so nothing is lost in single precision.
 *
 * One group of WIDE x DEEP items for WIDE columns of C and all infinite rows, groups after those for WIDE rows and all
 * infinite columns: WIDE sums at a time, each in DEEP parts. Mostly there are none of either, and a group is done with
 * looking.
 */
#ifndef WIDE
#define WIDE 32
#endif
#ifndef DEEP
#define DEEP 8
#endif

__kernel __attribute__((reqd_work_group_size(WIDE, DEEP, 1)))
void infinite_strips(__global const REAL *restrict left, __global const REAL *restrict right,
                     __global const uint *restrict left_largest, __global const uint *restrict right_largest,
                     __global SUM *restrict C, const int rows, const int columns, const int inner, const int stride,
                     const long left_inner, const long left_strip, const long right_inner, const long right_strip)
{
    __local REAL parts[DEEP][WIDE];
    __local int any;
    const int x = get_local_id(0), y = get_local_id(1), acrosses = (columns + WIDE - 1) / WIDE;
    const int turned = get_group_id(0) >= acrosses;
    const int strips = turned ? columns : rows, others = turned ? rows : columns;
    const int other = (get_group_id(0) - (turned ? acrosses : 0)) * WIDE + x;
    __global const uint *bits = turned ? right_largest : left_largest;
    int found = 0;

    if (x == 0 && y == 0)
        any = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 8
    for (int s = y * WIDE + x; s < strips; s += WIDE * DEEP)
        found |= bits[s] == INFINITE;
    if (found)
        any = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!any)
        return;
    for (int s = 0; s < strips; s++) {
        /* the whole group goes on together */
        if (bits[s] != INFINITE)
            continue;
        const int r = turned ? other : s, c = turned ? s : other;
        REAL sum = 0;
        if (other < others)
            for (int k = y; k < inner; k += DEEP)
                sum += left[k * left_inner + r * left_strip] * right[k * right_inner + c * right_strip];
        parts[y][x] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (y == 0 && other < others) {
            for (int i = 1; i < DEEP; i++)
                sum += parts[i][x];
            /* NaN has many bits, and X'X is to be symmetric in all of them */
            C[(size_t)r * stride + c] = sum == sum ? sum : NAN;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
