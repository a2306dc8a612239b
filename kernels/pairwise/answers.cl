/* answers.cl - moments or covariances of pairs of columns from sums over their rows, and which of them lost their digits.
 *
 * For every pair (i, j) of columns, with r the rows that both have, t(i, j) the sum of z_j over the rows of i, q(i, j) that of
 * z_j squared, and S the sum of z_i z_j, of which the upper triangle is read:
 *
 *   product = S - t(i, j) t(j, i) / r                deviations(i, j) = q(i, j) - t(i, j)^2 / r
 *
 * With MOMENTS comoment[i * columns + j] = product, squares[...] = deviations(i, j), mean[...] = t(i, j) / r and rows[...] = r.
 * Else covariance[...] = product / (r - ddof) * units[i] * units[j], NaN where r < least. All is symmetric bit for bit, and
 * product and deviations are 0 where there are fewer than two rows; on the diagonal they are the same bits.
 *
 * doubtful[i * columns + j], i <= j, is 1 where deviations of i or j are less than 1 / LEAST of what they were computed from,
 * or near the ends of the range (answers.clh), unless that column never changes; doubts[g] says how many pairs of group g are.
 *
 *   places[i] = (run, list, kind, rows of i)
 *
 * tell how t(i, j) comes about: run_sums.cl has sums in row `run`, tile_sums.cl in row `list`, where these are not negative.
 * Kind 0: what j sums up to on all its rows less both, which are of rows that i misses. Kind 1: the run, which is of rows
 * from the first one of i on, less the list. Kind 2: the list alone, of rows that i has. On all its rows j sums up to the sum
 * of found[g * width + j] over `chunks` chunks g, as they were packed, and its squares to S(j, j). Rows are counted likewise,
 * by run_counts.cl, always below the edge of the run, and tile_counts.cl. SOURCE is the type of those sums.
 *
 * One group of SIDE x DOWN items a SIDE x SIDE block on or above the diagonal, blocks[g] = (block row, block column). Reads
 * and writes all run along rows; what is of the other side of the diagonal is turned in local memory.
 */
#ifndef RUNS
#define RUNS 1          /* whether there are runs, and lists */
#endif
#ifndef LISTS
#define LISTS 1
#endif
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
#if MOMENTS
#define ANSWER SUM
#else
#define ANSWER REAL
#endif

/* What the kernels before this one have found, and how many columns a row of it has. */
struct sums {
    __global const SOURCE *runs, *lists;
    __global const int *run_counts, *list_counts;
    int width, across, run_squares, list_squares;
};

/* What column j sums up to on the rows of a column of this place, its squares, and out of what those were computed. Of all its
 * rows they are these. All is read whether it is needed or not, so that many reads are under way. */
static inline void sums_of(const struct sums s, const int4 place, const int j, const NUMBER own, const NUMBER own_squares,
                           NUMBER *total, NUMBER *squares, NUMBER *terms)
{
    NUMBER run = 0, run_squares = 0, list = 0, list_squares = 0;
    if (RUNS) {
        __global const SOURCE *from = s.runs + (size_t)max(place.x, 0) * s.width + j;
        run = from[0];
        run_squares = from[(size_t)s.run_squares * s.width];
        run = place.x < 0 ? (NUMBER)0 : run;
        run_squares = place.x < 0 ? (NUMBER)0 : run_squares;
    }
    if (LISTS) {
        __global const SOURCE *from = s.lists + (size_t)max(place.y, 0) * s.width + j;
        list = from[0];
        list_squares = from[(size_t)s.list_squares * s.width];
        list = place.y < 0 ? (NUMBER)0 : list;
        list_squares = place.y < 0 ? (NUMBER)0 : list_squares;
    }
    *total = place.z == 0 ? own - run - list : place.z == 1 ? run - list : list;
    *squares = place.z == 0   ? own_squares - run_squares - list_squares
               : place.z == 1 ? run_squares - list_squares
                              : list_squares;
    *terms = place.z == 0 ? own_squares : place.z == 1 ? run_squares : list_squares;
}

/* The rows that column j, of so many `rows`, has in common with a column of this place. */
static inline int rows_of(const struct sums s, const int4 place, const int rows, const int j)
{
    if (!LISTS)
        /* all begin somewhere and then have every row, or have none */
        return min(place.w, rows);
    const int listed = place.y < 0 ? 0 : s.list_counts[(size_t)place.y * s.across + j];
    const int before = RUNS && place.x >= 0 ? s.run_counts[(size_t)place.x * s.across + j] : 0;
    return place.z == 2 ? listed : rows - listed - before;
}

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void answers(__global const SUM *restrict products, __global const SUM *restrict found, __global const int4 *restrict places,
             __global const SOURCE *restrict run_sums, __global const int *restrict run_counts,
             __global const SOURCE *restrict list_sums, __global const int *restrict list_counts,
#if MOMENTS
             __global SUM *restrict comoment, __global SUM *restrict squares, __global SUM *restrict mean,
             __global long *restrict rows,
#else
             __global REAL *restrict covariance, __global const SUM *restrict units, const int ddof, const int least,
#endif
             __global uchar *restrict doubtful, __global int *restrict doubts, const int columns, const int width,
             const int chunks, const int across, const int runs, const int lists, __global const int2 *restrict blocks)
{
    __local NUMBER totals[SIDE][SIDE + 1], wholes[SIDE][SIDE + 1], terms_there[SIDE][SIDE + 1];
    __local ANSWER turned[SIDE][SIDE + 1];
#if MOMENTS
    __local int counts[SIDE][SIDE + 1];
#endif
    __local SUM own_parts[2][DOWN][SIDE];
    __local int doubted;
    const struct sums s = {run_sums, list_sums, run_counts, list_counts, width, across, runs, lists};
    const int2 at = blocks[get_group_id(0)];
    const int x = get_local_id(0), y = get_local_id(1), last = columns - 1, c = at.y * SIDE + x, turned_c = at.x * SIDE + x;
    const int inner_c = min(c, last), inner_turned = min(turned_c, last), rows_of_c = places[inner_c].w;
    const SUM own_squares = products[(size_t)inner_c * (columns + 1)];
    const SUM turned_squares = products[(size_t)inner_turned * (columns + 1)];
    SUM own_total = 0, turned_total = 0;
    NUMBER total[EACH], whole[EACH], terms[EACH];
    SUM product[EACH];
    int common[EACH], unsure = 0;

    if (x == 0 && y == 0)
        doubted = 0;
    for (int g = y; g < chunks; g += DOWN) {
        own_total += found[(size_t)g * width + inner_c];
        turned_total += found[(size_t)g * width + inner_turned];
    }
    own_parts[0][y][x] = own_total;
    own_parts[1][y][x] = turned_total;
    barrier(CLK_LOCAL_MEM_FENCE);
    own_total = turned_total = 0;
#pragma unroll
    for (int i = 0; i < DOWN; i++) {
        own_total += own_parts[0][i][x];
        turned_total += own_parts[1][i][x];
    }
    /* all reads of a side come before what is made of them, so that they are under way together */
#pragma unroll
    for (int n = 0; n < EACH; n++)
        sums_of(s, places[min(at.y * SIDE + y + n * DOWN, last)], inner_turned, turned_total, turned_squares, total + n,
                whole + n, terms + n);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        totals[y + n * DOWN][x] = total[n];
        wholes[y + n * DOWN][x] = whole[n];
        terms_there[y + n * DOWN][x] = terms[n];
    }
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int r = min(at.x * SIDE + y + n * DOWN, last);
        sums_of(s, places[r], inner_c, own_total, own_squares, total + n, whole + n, terms + n);
        common[n] = rows_of(s, places[r], rows_of_c, inner_c);
        product[n] = products[(size_t)r * columns + inner_c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int n = 0; n < EACH; n++) {
        const int i = y + n * DOWN, r = at.x * SIDE + i, same = r == c;
        if (r > c || c >= columns)
            continue;
        const int count = same ? rows_of_c : common[n], few = count < 2;
        const SUM share = inverse(max(count, 1)), squares_of_r = products[(size_t)r * (columns + 1)];
        const SUM mine = same ? own_total : (SUM)total[n], other = same ? own_total : (SUM)totals[x][i];
        const SUM both = few ? (SUM)0 : (same ? own_squares : product[n]) - mine * other * share;
        const NUMBER part = share, mine_there = total[n], other_there = totals[x][i];
        const NUMBER one = few ? (NUMBER)0 : same ? (NUMBER)both : whole[n] - mine_there * mine_there * part;
        const NUMBER two = few ? (NUMBER)0 : same ? one : wholes[x][i] - other_there * other_there * part;
        const NUMBER limit = same ? (NUMBER)own_squares : terms[n], other_limit = same ? limit : terms_there[x][i];
        /* of a column that never changes all numbers are 0 and exact */
        const int unkept = !few && !((own_squares == 0 || KEPT(one, limit)) && (squares_of_r == 0 || KEPT(two, other_limit)));
        doubtful[(size_t)r * columns + c] = unkept;
        unsure += unkept;
#if MOMENTS
        comoment[(size_t)r * columns + c] = both;
        squares[(size_t)r * columns + c] = one;
        mean[(size_t)r * columns + c] = mine * share;
        rows[(size_t)r * columns + c] = count;
        totals[x][i] = other * share;
        wholes[x][i] = two;
        counts[x][i] = count;
        turned[x][i] = both;
#else
        const REAL value = count < least ? (SUM)NAN : both * inverse(count - ddof) * (units[r] * units[c]);
        covariance[(size_t)r * columns + c] = value;
        turned[x][i] = value;
#endif
    }
    if (unsure)
        atomic_add(&doubted, unsure);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = y; i < SIDE; i += DOWN) {
        const size_t r = at.y * SIDE + i;
        if (r >= columns || turned_c >= r)
            continue;
#if MOMENTS
        comoment[r * columns + turned_c] = turned[i][x];
        squares[r * columns + turned_c] = wholes[i][x];
        mean[r * columns + turned_c] = totals[i][x];
        rows[r * columns + turned_c] = counts[i][x];
#else
        covariance[r * columns + turned_c] = turned[i][x];
#endif
    }
    if (x == 0 && y == 0)
        doubts[get_group_id(0)] = doubted;
}
