/* kendall.cl - for pairs of columns: pairs of rows in the same order in both, less those in opposite orders.
 *
 * Columns are sorted beforehand, once. For a pair (i, j), walk i from its smallest value up; of each row that j has too,
 * count the rows seen before it that lie below it in j, and those above. What has been seen is a set of places in j: one
 * bit each, and for each word of 64 bits the number of bits set in the words before it. So a count is one number and the
 * bits of one word, and to add a row is one bit and a 1 for each later word. Rows tied in i are counted before any of them
 * is added. All is whole numbers and exact.
 *
 *   order[j * rows + k]   the row of the k-th smallest value of column j; rows where it is missing come last
 *   present[j]            how many are not missing
 *   places[j * rows + r]  1 + the place of row r among the sorted values of column j; 0 where it is missing
 *   begins, ends          likewise: the first place of the values equal to this one, and the place behind the last
 *   tied[j]               whether column j has equal values
 *   tasks[2 * t], [2 * t + 1] the columns i and j of task t
 *   sums[4 * t + s]       s = 0: rows in the same order less those in opposite ones; 1: common rows; 2 and 3: pairs of
 *                         common rows that are tied in i, and in j
 *
 * An item does every get_global_size(0)-th pair, with a set of its own: of the word w, bits[w * GROUP] and
 * before[w * GROUP], from the start of the group's sets on, and its number in the group.
 */
#ifndef INDEX_BITS
#define INDEX_BITS 16  /* 16 up to 65,535 rows, else 32 */
#endif
#ifndef GROUP
#define GROUP 1        /* items of a group: 1 on a CPU */
#endif
#if INDEX_BITS == 16
#define INDEX ushort
#else
#define INDEX uint
#endif

/* The rows of the set at places below `place`. */
static inline int below(const int place, __global const ulong *bits, __global const INDEX *before)
{
    const int word = place >> 6;
    const ulong mask = ((ulong)1 << (place & 63)) - 1;
    return before[word * GROUP] + (int)popcount(bits[word * GROUP] & mask);
}

static inline void add(const int place, const int words, __global ulong *restrict bits, __global INDEX *restrict before)
{
    const int word = place >> 6;
    bits[word * GROUP] |= (ulong)1 << (place & 63);
#if GROUP == 1
    /* all of them, so that it is a loop of vectors */
    for (int w = 0; w < words; w++)
        before[w] += w > word;
#else
    for (int w = word + 1; w < words; w++)
        before[w * GROUP]++;
#endif
}

/* The pairs of rows that are tied in a column, of those rows that `partner` has too. */
static inline long ties(const int count, __global const INDEX *walk, __global const INDEX *ends,
                        __global const INDEX *partner)
{
    long found = 0;
    for (int k = 0; k < count;) {
        const int end = ends[walk[k]];
        long c = 0;
        for (; k < end; k++)
            c += partner[walk[k]] != 0;
        found += c * (c - 1) / 2;
    }
    return found;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void kendall(__global const INDEX *restrict order, __global const int *restrict present,
             __global const INDEX *restrict places, __global const INDEX *restrict begins,
             __global const INDEX *restrict ends, __global const int *restrict tied, __global const int *restrict tasks,
             __global ulong *restrict all_bits, __global INDEX *restrict all_before, __global long *restrict sums,
             const int rows, const int words, const int count)
{
    const size_t mine = (size_t)get_group_id(0) * words * GROUP + get_local_id(0);
    __global ulong *bits = all_bits + mine;
    __global INDEX *before = all_before + mine;

    for (int task = get_global_id(0); task < count; task += get_global_size(0)) {
        const int i = tasks[2 * task], j = tasks[2 * task + 1];
        __global const INDEX *walk = order + (size_t)i * rows;
        __global const INDEX *place = places + (size_t)j * rows;
        __global const INDEX *begin = begins + (size_t)j * rows, *end = ends + (size_t)j * rows;
        __global const INDEX *end_here = ends + (size_t)i * rows;
        long excess = 0;
        int n = 0;

        for (int w = 0; w < words; w++) {
            bits[w * GROUP] = 0;
            before[w * GROUP] = 0;
        }
        for (int k = 0; k < present[i];) {
            const int next = end_here[walk[k]], first = k, seen = n;
            for (; k < next; k++) {
                const int row = walk[k];
                if (place[row] == 0)
                    continue;
                const int less = below(begin[row], bits, before);
                const int others = tied[j] ? below(end[row], bits, before) : less;
                excess += less - (seen - others);
                n++;
            }
            for (k = first; k < next; k++)
                if (place[walk[k]] != 0)
                    add(place[walk[k]] - 1, words, bits, before);
        }
        sums[4 * task] = excess;
        sums[4 * task + 1] = n;
        sums[4 * task + 2] = tied[i] ? ties(present[i], walk, end_here, place) : 0;
        sums[4 * task + 3] =
            tied[j] ? ties(present[j], order + (size_t)j * rows, end, places + (size_t)i * rows) : 0;
    }
}
