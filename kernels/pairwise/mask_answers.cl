/* mask_answers.cl - covariances of pairs of columns from products with masks, and which of them may have lost their digits.
 *
 *   covariance[i * columns + j] = (S(i, j) - t(i, j) t(j, i) / r) / (r - ddof) * units[i] * units[j],   NaN where r < least
 *
 * S the sum of z_i z_j, products[i * columns + j], r the rows that both have, common[i * columns + j], both read for i <= j;
 * t(i, j) the sum of z_j over the rows of i, sums[j * columns + i]. All is symmetric bit for bit, and 0 where there are fewer
 * than two rows.
 *
 * How far the squares of a column go on the rows of a pair is not summed up. They are floors[j] at least, less floors[columns +
 * j] for each row that the other one misses (capped_squares.cl). doubtful[i * columns + j], i <= j, is 1 where deviations from
 * the mean of the pair's rows might be less than 1 / LEAST of them (answers.clh), unless one of them never changes: then the
 * answer is 0, exactly. doubts[g] says how many pairs of group g are doubtful. SOURCE is the type of sums and common.
 *
 * One group of SIDE x DOWN items a SIDE x SIDE block on or above the diagonal, blocks[g] = (block row, block column).
 */
#ifndef SIDE
#define SIDE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#if SIDE % DOWN != 0
#error "SIDE must be whole runs of DOWN"
#endif

#define EACH (SIDE / DOWN)

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void mask_answers(__global const SUM *restrict products, __global const NUMBER *restrict floors,
                  __global const int *restrict own_rows, __global const SOURCE *restrict sums,
                  __global const SOURCE *restrict common, __global REAL *restrict covariance, __global const SUM *restrict units,
                  const int ddof, const int least, __global uchar *restrict doubtful, __global int *restrict doubts,
                  const int columns, __global const int2 *restrict blocks)
{
    __local REAL turned[SIDE][SIDE + 1];
    __local int doubted;
    const int2 at = blocks[get_group_id(0)];
    const int x = get_local_id(0), y = get_local_id(1), last = columns - 1;
    const int c = at.y * SIDE + x, inner_c = min(c, last), turned_c = at.x * SIDE + x;
    const SUM own_squares = products[(size_t)inner_c * (columns + 1)], own_unit = units[inner_c];
    const NUMBER own_floor = floors[inner_c], own_cap = floors[columns + inner_c];
    const int mine_rows = own_rows[inner_c];
    SUM product[EACH];
    SOURCE mine[EACH], other[EACH], rows[EACH];
    int unsure = 0;

    if (x == 0 && y == 0)
        doubted = 0;
    /* so that all reads are under way together */
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const size_t r = min(at.x * SIDE + y + n * DOWN, last), turned_r = min(at.y * SIDE + y + n * DOWN, last);
        other[n] = sums[turned_r * columns + min(turned_c, last)];
        product[n] = products[r * columns + inner_c];
        mine[n] = sums[r * columns + inner_c];
        rows[n] = common[r * columns + inner_c];
    }
#pragma unroll
    for (int n = 0; n < EACH; n++)
        turned[y + n * DOWN][x] = other[n];
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int i = y + n * DOWN, r = at.x * SIDE + i, same = r == c;
        if (r > c || c >= columns)
            continue;
        const int count = same ? mine_rows : (int)rows[n], few = count < 2;
        const NUMBER first = mine[n], second = turned[x][i];
        const SUM share = inverse(max(count, 1)), both = few ? (SUM)0 : product[n] - (SUM)first * second * share;
        const REAL value = count < least ? (SUM)NAN : both * inverse(count - ddof) * (units[r] * own_unit);
        const NUMBER one = floors[r] - (own_rows[r] - count) * floors[columns + r];
        const NUMBER two = own_floor - (mine_rows - count) * own_cap, part = share;
        /* where one never changes all numbers are 0 and exact */
        const int kept = few || own_squares == 0 || products[(size_t)r * (columns + 1)] == 0 ||
                         (same ? KEPT((NUMBER)both, (NUMBER)own_squares)
                               : KEPT(one - first * first * part, one) && KEPT(two - second * second * part, two));
        doubtful[(size_t)r * columns + c] = !kept;
        unsure += !kept;
        covariance[(size_t)r * columns + c] = value;
        turned[x][i] = value;
    }
    if (unsure)
        atomic_add(&doubted, unsure);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int i = y + n * DOWN;
        const size_t r = at.y * SIDE + i;
        if (r < columns && turned_c < r)
            covariance[r * columns + turned_c] = turned[i][x];
    }
    if (x == 0 && y == 0)
        doubts[get_group_id(0)] = doubted;
}
