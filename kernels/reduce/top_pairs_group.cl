/* top_pairs_group.cl - the k largest pairs of each matrix of a block, by digits; results as by top_pairs.cl, but
 * in any order. Matrices lie as matrices.clh says.
 *
 * One group a matrix. Each element has a number that is larger the sooner it is chosen: the bits of its key (its value or
 * magnitude, in an order that whole numbers have), then 32 bits that count down with its place, so no two are equal. The
 * k-th largest number is found digit by digit from the top: all elements that share the digits known so far are counted by
 * their next digit, and the counts say in which of its 256 values the k-th lies. Mostly few digits do: as soon as all that
 * share them are wanted, the search ends, and everything from there up is written.
 *
 * i * columns + j must fit in 32 bits.
 */
#ifndef ABSOLUTE
#define ABSOLUTE 1     /* 1: compare magnitudes; 0: values */
#endif
#if REAL_BITS == 64
#define WHOLE ulong
#define BITS(x) as_ulong(x)
#else
#define WHOLE uint
#define BITS(x) as_uint(x)
#endif
#define SIGN ((WHOLE)1 << (REAL_BITS - 1))
#define DIGITS (REAL_BITS / 8 + 4)
#define EACH_PAIR(i, j) \
    for (int i = item / STRIP; i < columns; i += GROUP / STRIP) \
        for (int j = i + 1 + item % STRIP; j < columns; j += STRIP)

static inline WHOLE key(const REAL x)
{
    /* both zeros are one key */
    const WHOLE bits = x == 0 ? (WHOLE)0 : BITS(x);
#if ABSOLUTE
    return bits & ~SIGN;
#else
    return bits & SIGN ? ~bits : bits | SIGN;
#endif
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void top_pairs(__global const REAL *restrict block, __global REAL *restrict values, __global int *restrict chosen,
               const int columns, const ulong size, const int k, const int first)
{
    __local int counts[256], done, written, missing;
    __local WHOLE key_known, key_mask;
    __local uint place_known, place_mask;
    const int item = get_local_id(0);
    __global const REAL *matrix = block + get_group_id(0) * size;
    __global REAL *out = values + (first + get_group_id(0)) * k;
    __global int *places = chosen + (first + get_group_id(0)) * k * 2;

    if (item == 0) {
        key_known = key_mask = 0;
        place_known = place_mask = 0;
        missing = k;
        written = done = 0;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        for (int c = item; c < 256; c += GROUP)
            counts[c] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        const int in_key = digit < REAL_BITS / 8;
        const int shift = in_key ? REAL_BITS - 8 * (digit + 1) : 8 * (DIGITS - digit - 1);
        if (!done)
            EACH_PAIR(i, j) {
                const REAL x = matrix[AT(i) + j];
                const WHOLE high = key(x);
                const uint low = ~((uint)i * columns + j);
                if (x == x && (high & key_mask) == key_known && (low & place_mask) == place_known)
                    atomic_inc(counts + (in_key ? (int)(high >> shift & 255) : (int)(low >> shift & 255)));
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item == 0 && !done) {
            int above = 0, c = 255;
            for (; c > 0 && above + counts[c] < missing; c--)
                above += counts[c];
            missing -= above;
            if (in_key) {
                key_known |= (WHOLE)c << shift;
                key_mask |= (WHOLE)255 << shift;
            } else {
                place_known |= (uint)c << shift;
                place_mask |= (uint)255 << shift;
            }
            /* fewer than are missing are there only where all are too few */
            done = counts[c] <= missing;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    EACH_PAIR(i, j) {
        const REAL x = matrix[AT(i) + j];
        const WHOLE high = key(x) & key_mask;
        const uint low = ~((uint)i * columns + j) & place_mask;
        if (x == x && (high > key_known || (high == key_known && low >= place_known))) {
            const int r = atomic_inc(&written);
            out[r] = x;
            places[2 * r] = i;
            places[2 * r + 1] = j;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = written + item; r < k; r += GROUP) {
        out[r] = (REAL)NAN;
        places[2 * r] = places[2 * r + 1] = -1;
    }
}
