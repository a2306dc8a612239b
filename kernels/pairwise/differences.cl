/* differences.cl - from sums over the rows of pairs to their moments, and which of them lost their digits.
 *
 * For every pair (i, j) of columns, with r the rows that both have, t(i, j) the sum of z_j over the rows of i, q(i, j) that of
 * z_j squared, and S the sum of z_i z_j:
 *
 *   comoment[i * columns + j] = S - t(i, j) t(j, i) / r     squares[...] = q(i, j) - t(i, j)^2 / r     mean[...] = t(i, j) / r
 *
 * n[...] = r, and doubtful[...] is 1 where the squares are less than 1 / LEAST of what they were computed from, or near the
 * ends of the range. All is 0 where there are fewer than two rows, but for the mean. Symmetric bit for bit; on the diagonal
 * squares and comoment are the same bits.
 *
 * t(i, j) = base[i] own[j] + sign[i] sums[at[i] + j]: own is the sum over all rows of j; listed_sums.cl makes sums of the rows
 * that i misses (base 1, sign -1) or has (0, 1), and where i misses none it takes none (1, 0). q likewise, from the diagonal
 * of the products and the sums `squares_at` further on. table holds own, base and sign, `columns` of each.
 *
 * For CPU devices: one item does ROWS columns i and COLUMNS columns j; groups are (columns / COLUMNS, columns / ROWS), rounded
 * up. A GPU does all that in answers.cl.
 */
#ifndef COLUMNS
#define COLUMNS 64      /* columns j of a group */
#endif
#ifndef ROWS
#define ROWS 16         /* columns i of a group: so many neighbours share what t(j, i) reads of memory */
#endif
#ifndef LEAST
#define LEAST 1024
#endif
#if SUM_BITS == 64
#define TINY ((SUM)0x1p-480)
#else
#define TINY ((SUM)0x1p-60)
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void differences(__global const SUM *restrict products, __global const int *restrict counts, __global const SUM *restrict sums,
                 __global const SUM *restrict table, __global const int *restrict at, __global SUM *restrict comoment,
                 __global SUM *restrict squares, __global SUM *restrict mean, __global long *restrict n,
                 __global uchar *restrict doubtful, const int columns, const int squares_at)
{
    const int first = get_group_id(0) * COLUMNS;
    const int last = min((int)(get_group_id(0) + 1) * COLUMNS, columns);
    const int begin = get_group_id(1) * ROWS, end = min(begin + ROWS, columns);
    __global const SUM *base = table + columns, *sign = table + 2 * columns;
    SUM own_squares[COLUMNS];
    for (int j = first, o = 0; j < last; j++, o++)
        own_squares[o] = products[(size_t)j * columns + j];

    for (int i = begin; i < end; i++) {
        const SUM own = table[i], taken = base[i], added = sign[i];
        __global const SUM *listed = sums + at[i], *listed_squares = listed + squares_at;
        const size_t row = (size_t)i * columns;
        for (int j = first, o = 0; j < last; j++, o++) {
            const int same = i == j, count = counts[row + j];
            const SUM share = (SUM)1 / (SUM)max(count, 1);
            const SUM total = same ? table[j] : taken * table[j] + added * listed[j];
            const SUM other = same ? table[j] : base[j] * own + sign[j] * sums[at[j] + i];
            const SUM whole = same ? own_squares[o] : taken * own_squares[o] + added * listed_squares[j];
            const SUM terms = taken != 0 ? own_squares[o] : whole;
            const SUM left = count < 2 ? (SUM)0 : whole - total * total * share;
            const SUM product = count < 2 ? (SUM)0 : products[row + j] - total * other * share;
            comoment[row + j] = same ? left : product;
            squares[row + j] = left;
            mean[row + j] = total * share;
            n[row + j] = count;
            doubtful[row + j] = count > 1 && !(left * LEAST >= terms && left > TINY && left < 1 / TINY);
        }
    }
}
