/* copy.cl - copy part of a vector: out[i] = in[offset + i] for i < count.
 *
 * The memory article's first experiment, mended: there one copy moved more than the other. Here every form moves the
 * same elements by the same number of items in the same groups, so bytes per second compare them. A group owns GROUP x
 * EACH neighbouring pieces of LOAD elements; all that changes is which item moves which of them:
 *
 *   TOGETHER 1   piece = step * GROUP + item     neighbouring items read neighbouring pieces (coalesced)
 *   TOGETHER 0   piece = item * EACH + step      an item's pieces are neighbours, those of two items EACH apart (strided)
 *
 * A GPU serves the items of a warp at once, so coalesced reads win there; a core runs them one after the other and does
 * not mind. Wide loads save instructions, not bytes. An offset costs where it makes a warp touch one line more.
 * Must hold: offset + count < 2^31; ALIGNED only where offset is a multiple of LOAD.
 */
#ifndef LOAD
#define LOAD 1         /* elements that one load takes: 1, 2 or 4 */
#endif
#ifndef TOGETHER
#define TOGETHER 1
#endif
#ifndef ALIGNED
#define ALIGNED 1      /* 0 tells the compiler that a wide load may start anywhere: it then makes narrow ones of it */
#endif
#ifndef GROUP
#define GROUP 64       /* items of a group */
#endif
#ifndef EACH
#define EACH 32        /* pieces that an item moves */
#endif

#if LOAD == 1
typedef REAL PIECE;
#else
typedef JOIN(REAL, LOAD) PIECE;
#endif
#if ALIGNED
typedef PIECE READ_PIECE;
#else
typedef PIECE READ_PIECE __attribute__((aligned(REAL_BITS / 8)));
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void copy(__global const REAL *restrict in, __global REAL *restrict out, const int count, const int offset)
{
    const int first = get_group_id(0) * GROUP * EACH, item = get_local_id(0);
    __global const REAL *from = in + offset;
    for (int step = 0; step < EACH; step++) {
#if TOGETHER
        const int at = (first + step * GROUP + item) * LOAD;
#else
        const int at = (first + item * EACH + step) * LOAD;
#endif
        if (at + LOAD <= count)
            *(__global PIECE *)(out + at) = *(__global const READ_PIECE *)(from + at);
        else
            for (int i = at; i < count; i++)
                out[i] = from[i];
    }
}
