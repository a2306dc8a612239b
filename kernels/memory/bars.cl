/* bars.cl - sums over price bars, for their means: of close, or of (high + low) / 2.
 *
 * APART 0   an array of structures: in[bar * 4 + field]
 * APART 1   a structure of arrays:  in[field * count + bar]
 *           with the fields open, high, low, close; count bars in all
 * MIDDLE 0  out[i] = the sum of close over the bars of item i
 * MIDDLE 1  out[i] = the sum of (high + low) / 2 over them
 *
 * Item i = group * GROUP + local has the bars group * GROUP * EACH + step * GROUP + local, step < EACH, below count.
 * The memory article's step "structure of arrays". A bar of four floats is 16 bytes and one of four doubles is 32, two
 * of them to a line of 64; memory moves whole lines, so a question about one field of four reads four times too much
 * where bars are structures: apart should win by that much, and by less for two fields.
 */
#ifndef APART
#define APART 0
#endif
#ifndef MIDDLE
#define MIDDLE 0
#endif
#ifndef GROUP
#define GROUP 64       /* items of a group */
#endif
#ifndef EACH
#define EACH 32        /* bars that an item adds up */
#endif

typedef struct {
    REAL open, high, low, close;
} BAR;

#if APART
#define FIELD(position, name) in[(size_t)(position) * count + bar]
#else
#define FIELD(position, name) ((__global const BAR *)in)[bar].name
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_up(__global const REAL *restrict in, __global REAL *restrict out, const int count)
{
    REAL sum = (REAL)0;
    for (int step = 0; step < EACH; step++) {
        const int bar = (get_group_id(0) * EACH + step) * GROUP + get_local_id(0);
        if (bar < count) {
#if MIDDLE
            sum += (FIELD(1, high) + FIELD(2, low)) * (REAL)0.5;
#else
            sum += FIELD(3, close);
#endif
        }
    }
    out[get_global_id(0)] = sum;
}
