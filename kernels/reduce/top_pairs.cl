/* top_pairs.cl - the k largest pairs of each matrix of a block, by a heap.
 *
 *   values[(first + m) * k + r] = C_m(i, j) of the r-th pair i < j of matrix m, the largest first
 *   chosen[((first + m) * k + r) * 2], [... + 1] = i, j
 *
 * for matrix m = get_group_id(0) of the block, which lies as matrices.clh says. The largest by value, or by magnitude if
 * ABSOLUTE; of equal ones that of the lowest (i, j); NaN never. Where pairs run out the rest is NaN and -1.
 *
 * For CPU devices: one work-item a matrix. The least of those chosen so far is the root of a heap that lies in the output,
 * and a whole vector of elements is passed over by one comparison with it. A device with local memory takes
 * top_pairs_group.cl.
 */
#ifndef ABSOLUTE
#define ABSOLUTE 1     /* 1: compare magnitudes; 0: values */
#endif
#if ABSOLUTE
#define KEY(x) ((x) < 0 ? -(x) : (x))
#else
#define KEY(x) (x)
#endif

/* whether element x at (i, j) makes way before element r of the heap does */
static inline int less(const REAL x, const int i, const int j, __global const REAL *values, __global const int *chosen,
                       const int r)
{
    const REAL a = KEY(x), b = KEY(values[r]);
    return a < b || (a == b && (i > chosen[2 * r] || (i == chosen[2 * r] && j > chosen[2 * r + 1])));
}

static inline void put(__global REAL *values, __global int *chosen, const int r, const REAL x, const int i, const int j)
{
    values[r] = x;
    chosen[2 * r] = i;
    chosen[2 * r + 1] = j;
}

/* element r of the heap becomes a copy of element s */
static inline void copy(__global REAL *values, __global int *chosen, const int r, const int s)
{
    put(values, chosen, r, values[s], chosen[2 * s], chosen[2 * s + 1]);
}

/* put x at (i, j) in the place of the root of a heap of `size` elements: down, past those that make way sooner */
static void sink(__global REAL *values, __global int *chosen, const int size, const REAL x, const int i, const int j)
{
    int r = 0;
    for (int s = 1; s < size; s = 2 * r + 1) {
        if (s + 1 < size && less(values[s + 1], chosen[2 * s + 2], chosen[2 * s + 3], values, chosen, s))
            s++;
        if (less(x, i, j, values, chosen, s))
            break;
        copy(values, chosen, r, s);
        r = s;
    }
    put(values, chosen, r, x, i, j);
}

static void take(__global REAL *values, __global int *chosen, int *held, const int k, const REAL x, const int i, const int j)
{
    if (*held < k) {
        if (x != x)
            return;
        /* up from the end, past those that stay longer */
        int r = (*held)++;
        for (; r > 0 && less(x, i, j, values, chosen, (r - 1) / 2); r = (r - 1) / 2)
            copy(values, chosen, r, (r - 1) / 2);
        put(values, chosen, r, x, i, j);
    } else if (KEY(x) > KEY(values[0]))
        /* an equal one would have a higher place, and make way at once */
        sink(values, chosen, k, x, i, j);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void top_pairs(__global const REAL *restrict block, __global REAL *restrict values, __global int *restrict chosen,
               const int columns, const ulong size, const int k, const int first)
{
    __global const REAL *matrix = block + get_group_id(0) * size;
    __global REAL *heap = values + (first + get_group_id(0)) * k;
    __global int *places = chosen + (first + get_group_id(0)) * k * 2;
    int held = 0;
    for (int i = 0; i < columns; i++) {
        __global const REAL *row = matrix + AT(i);
        int j = i + 1;
        for (; j < columns && held < k; j++)
            take(heap, places, &held, k, row[j], i, j);
        for (; j + LANES <= columns; j += LANES) {
            const REAL least = KEY(heap[0]);
            int larger = 0;
#pragma unroll
            for (int l = 0; l < LANES; l++)
                larger |= KEY(row[j + l]) > least;
            if (larger)
                for (int l = 0; l < LANES; l++)
                    take(heap, places, &held, k, row[j + l], i, j + l);
        }
        for (; j < columns; j++)
            take(heap, places, &held, k, row[j], i, j);
    }
    /* the root goes to the end, again and again */
    for (int last = held - 1; last > 0; last--) {
        const REAL x = heap[last];
        const int i = places[2 * last], j = places[2 * last + 1];
        copy(heap, places, last, 0);
        sink(heap, places, last, x, i, j);
    }
    for (; held < k; held++)
        put(heap, places, held, (REAL)NAN, -1, -1);
}
