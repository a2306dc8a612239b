/* spearman.cl - sums of products of the ranks of pairs of columns, each pair ranked on the rows that both have.
 *
 * Columns are sorted beforehand, once. A pair (i, j) is ranked without sorting: walk j from its smallest value up, count
 * the rows that i has too, and leave the count in that row of a scratch table; then walk i the same way and multiply its
 * own count with what lies in the row. Ranks are doubled (first place + last place + 1 of a tie), so all is whole numbers
 * and every sum is exact. A walk takes long ties as it comes to them; short ones would stop it too often, so it takes no
 * notice of those, and mends them afterwards.
 *
 *   order[j * rows + k]      the row of the k-th smallest value of column j; rows where it is missing come last
 *   present[j]               how many are not missing
 *   ties[2 * g], [2 * g + 1] the places where tied values begin and end: the long ties of column j are the groups g from
 *                            firsts[2 * j] on, the short ones those from firsts[2 * j + 1] to firsts[2 * j + 2]
 *   masks[b][row][l]         1 where column b * BLOCK + l has that row, else 0
 *   tasks[2 * t], [2 * t + 1] the block b of columns i and the column j of task t; columns i >= j are left out
 *   sums[t][s][l]            s = 0: the sum of products of doubled ranks, as a whole number modulo 2**64; 1: the number of
 *                            common rows; 2 and 3: the sum of c**3 - c over the ties of c common rows, of i and of j
 *
 * An item ranks LANES columns i against one j; the first walk is the same for all of them, so they are the lanes of a
 * vector on a CPU, and neighbouring items (GROUP) on a GPU, whose reads are then of neighbours. Each group works through
 * every get_num_groups(0)-th task in a scratch of its own, [row][l].
 */
#ifndef INDEX_BITS
#define INDEX_BITS 16  /* 16 up to 32,767 rows, else 32 */
#endif
#ifndef LANES
#define LANES 8        /* columns of an item: 8 on a CPU, 1 on a GPU */
#endif
#ifndef GROUP
#define GROUP 1        /* items of a group: 1 on a CPU */
#endif
#if INDEX_BITS == 16
#define INDEX ushort
#define PRODUCT uint
#else
#define INDEX uint
#define PRODUCT ulong
#endif
#if LANES == 1
#define COUNTS INDEX
#else
#define COUNTS JOIN(INDEX, LANES)
#endif
#define BLOCK (LANES * GROUP)

/* The number of tied triples of rows, six times, but for a difference that is the same for all: c**3 - c. */
static inline ulong cube(const ulong c)
{
    return c * c * c - c;
}

/* Number the rows that both columns have, from place `from` to `to` of the walk, as if no value were tied. */
static inline COUNTS numbered(COUNTS seen, const int from, const int to, __global const INDEX *walk,
                              __global const COUNTS *common, __global COUNTS *ranks)
{
    for (int k = from; k < to; k++) {
        const COUNTS one = common[walk[k] * GROUP];
        seen += one;
        ranks[walk[k] * GROUP] = (seen + seen) * one;
    }
    return seen;
}

/* Add up half the products of the ranks of `partner` and those of this walk, as if no value were tied. */
static inline ulong multiplied(INDEX *n, const int from, const int to, __global const INDEX *walk,
                               __global const INDEX *partner)
{
    ulong sum = 0;
    INDEX seen = *n;
    for (int k = from; k < to; k++) {
        const INDEX rank = partner[walk[k] * BLOCK];
        seen += rank != 0;
        sum += (PRODUCT)rank * seen;
    }
    *n = seen;
    return sum;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void spearman(__global const INDEX *restrict order, __global const int *restrict present,
              __global const int *restrict ties, __global const int *restrict firsts,
              __global const INDEX *restrict masks, __global const int *restrict tasks, __global INDEX *restrict scratch,
              __global ulong *restrict sums, const int rows, const int count)
{
    const int item = get_local_id(0);
    __global INDEX *mine = scratch + (size_t)get_group_id(0) * rows * BLOCK + item * LANES;
    __global COUNTS *ranks = (__global COUNTS *)mine;

    for (int task = get_group_id(0); task < count; task += get_num_groups(0)) {
        const int block = tasks[2 * task], j = tasks[2 * task + 1];
        const int left = block * BLOCK + item * LANES;
        __global const COUNTS *common =
            (__global const COUNTS *)(masks + (size_t)block * rows * BLOCK + item * LANES);
        __global const INDEX *walk = order + (size_t)j * rows;
        ulong theirs[LANES];
        COUNTS seen = 0;
        int g = firsts[2 * j], at = 0;

        for (int l = 0; l < LANES; l++)
            theirs[l] = 0;
        for (; g < firsts[2 * j + 1]; g++) {
            const int begin = ties[2 * g], end = ties[2 * g + 1];
            seen = numbered(seen, at, begin, walk, common, ranks);
            const COUNTS before = seen;
            for (int k = begin; k < end; k++)
                seen += common[walk[k] * GROUP];
            const COUNTS c = seen - before, rank = before + seen + (INDEX)1;
            for (int k = begin; k < end; k++)
                ranks[walk[k] * GROUP] = rank * common[walk[k] * GROUP];
            for (int l = 0; l < LANES; l++)
                theirs[l] += cube(((const INDEX *)&c)[l]);
            at = end;
        }
        numbered(seen, at, present[j], walk, common, ranks);
        for (int k = present[j]; k < rows; k++)
            ranks[walk[k] * GROUP] = 0;
        for (; g < firsts[2 * j + 2]; g++) {
            /* c common rows, the last of which has the doubled rank `last`: of all of them it is last - c + 1 */
            const int begin = ties[2 * g], end = ties[2 * g + 1];
            COUNTS c = 0, last = 0;
            for (int k = begin; k < end; k++) {
                const COUNTS one = common[walk[k] * GROUP];
                c += one;
                last += (ranks[walk[k] * GROUP] - last) * one;
            }
            const COUNTS rank = last - c + (INDEX)1;
            for (int k = begin; k < end; k++)
                ranks[walk[k] * GROUP] = rank * common[walk[k] * GROUP];
            for (int l = 0; l < LANES; l++)
                theirs[l] += cube(((const INDEX *)&c)[l]);
        }

        for (int l = 0; l < LANES && left + l < j; l++) {
            const int i = left + l;
            __global const INDEX *partner = mine + l;
            __global ulong *out = sums + (size_t)task * 4 * BLOCK + item * LANES + l;
            ulong half_sum = 0, sum = 0, own = 0;
            INDEX n = 0;
            walk = order + (size_t)i * rows;
            g = firsts[2 * i];
            at = 0;
            for (; g < firsts[2 * i + 1]; g++) {
                const int begin = ties[2 * g], end = ties[2 * g + 1];
                half_sum += multiplied(&n, at, begin, walk, partner);
                const ulong before = n;
                ulong part = 0;
                for (int k = begin; k < end; k++) {
                    const INDEX rank = partner[walk[k] * BLOCK];
                    n += rank != 0;
                    part += rank;
                }
                sum += part * (before + n + 1);
                own += cube(n - before);
                at = end;
            }
            half_sum += multiplied(&n, at, present[i], walk, partner);
            for (; g < firsts[2 * i + 2]; g++) {
                /* the m-th of c common rows was given the doubled rank before + 2 m in place of before + c + 1 */
                const int begin = ties[2 * g], end = ties[2 * g + 1];
                ulong m = 0, part = 0, weighted = 0;
                for (int k = begin; k < end; k++) {
                    const INDEX rank = partner[walk[k] * BLOCK];
                    m += rank != 0;
                    part += rank;
                    weighted += rank * m;
                }
                sum += (m + 1) * part - 2 * weighted;
                own += cube(m);
            }
            out[0] = sum + 2 * half_sum;
            out[BLOCK] = n;
            out[2 * BLOCK] = own;
            out[3 * BLOCK] = theirs[l];
        }
    }
}
