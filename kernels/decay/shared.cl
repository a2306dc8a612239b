/* shared.cl - expanding and exponentially weighted matrices where all pairs share their rows: no value is missing.
 *
 *   R(r, j) = a(t, i) a(t, j) R(r, j) + b(t, i) b(t, j)            i = left[r]; a, b, p, q from columns.cl
 *   element (r, j) of matrix t = R(r, j) p(t, i) p(t, j)           or R(r, j) p(t, j) q(t, i) for a BETA
 *
 * for rows r, columns j and t = 0 .. count - 1, in this order of t; kept[r * stride ...] holds row r of R between blocks. A
 * matrix is `cells` elements of out, from its element `offset` on: row r starts at r * columns, or, PACKED, at
 * i * (2 * columns - i - 1) / 2 and holds j >= i only. Elements (i, j) and (j, i) take the same operations, so they are the
 * same bits. R is the state itself, beyond [-1, 1] by rounding only, so one recurrence serves all magnitudes.
 *
 * On a CPU one work-item takes the rows bounds[g] to bounds[g + 1] of its group and all columns, LANES at a time, and writes
 * matrix after matrix: its writes are long and in order. On a GPU (GROUP > 1) it takes one element and all its matrices:
 * R stays in a register (TILE matrices between two visits to memory), and neighbours write side by side.
 */
#ifndef LANES
#define LANES WIDTH     /* columns that a work-item takes together; 1 on a GPU */
#endif
#ifndef GROUP
#define GROUP 1
#endif
#ifndef TILE
#define TILE 4          /* matrices for which R is held in registers */
#endif
#ifndef BETA
#define BETA 0
#endif
#ifndef UNIT
#define UNIT 0          /* 1: the diagonal is 1 where it is defined */
#endif
#ifndef VAST
#define VAST 0          /* 1: the product of two deviations may overflow where their covariance does not */
#endif
#ifndef PACKED
#define PACKED 0
#endif
/* a correlation this near to 1 or -1, or beyond, is exactly that: no rounding tells equal columns apart */
#if REAL_BITS == 64
#define NEAR (1 - 0x1p-48)
#else
#define NEAR (1 - 0x1p-19f)
#endif
#define RESULT SOURCE   /* the type of the answer goes by SOURCE_BITS */
#if LANES == 1
#define LANE REAL
#define LOOSE REAL
#else
#define LANE JOIN(REAL, LANES)
typedef LANE LOOSE __attribute__((aligned(sizeof(REAL))));
#endif

/* LANES elements from j of row r on, in the matrices start .. stop - 1; the first `lanes` of them are written */
static inline __attribute__((always_inline)) void
strip(__global const REAL *restrict a, __global const REAL *restrict b, __global const REAL *restrict p,
      __global const REAL *restrict q, __global REAL *kept, __global RESULT *out, const int i, const int j,
      const int lanes, const int stride, const int start, const int stop, const long cells)
{
    LANE R = *(__global LOOSE *)kept;
    for (int t = start; t < stop; t++) {
        const size_t from = (size_t)t * stride;
        const LANE a_j = *(__global const LOOSE *)(a + from + j);
        const LANE b_j = *(__global const LOOSE *)(b + from + j);
        const LANE p_j = *(__global const LOOSE *)(p + from + j);
        R = (a[from + i] * a_j) * R + b[from + i] * b_j;
#if BETA
        LANE value = (R * p_j) * q[from + i];
#elif VAST
        const LANE p_i = (LANE)(p[from + i]);
        LANE value = (R * (p_i > p_j ? p_i : p_j)) * (p_i > p_j ? p_j : p_i);
#else
        LANE value = R * (p[from + i] * p_j);
#endif
#if UNIT && !BETA
        value = value > NEAR ? (LANE)(1) : value;
        value = value < -NEAR ? (LANE)(-1) : value;
#endif
        __global RESULT *at = out + t * cells;
#if LANES == 1
        *at = (RESULT)value;
#else
#if SOURCE_BITS == REAL_BITS
        if (lanes == LANES) {
            *(__global LOOSE *)at = value;
            continue;
        }
#endif
        REAL part[LANES] __attribute__((aligned(sizeof(LANE))));
        *(LANE *)part = value;
        if (lanes == LANES) {
#pragma unroll
            for (int k = 0; k < LANES; k++)
                at[k] = (RESULT)part[k];
        } else
            for (int k = 0; k < lanes; k++)
                at[k] = (RESULT)part[k];
#endif
    }
    *(__global LOOSE *)kept = R;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void shared_rows(__global const REAL *restrict a, __global const REAL *restrict b, __global const REAL *restrict p,
                 __global const REAL *restrict q, __global REAL *restrict kept, __global RESULT *restrict out,
                 __global const int *restrict left, __global const int *restrict bounds, const int columns,
                 const int stride, const int count, const long cells, const long offset)
{
#if GROUP == 1
    const int begin = bounds[get_group_id(0)], end = bounds[get_group_id(0) + 1];
#else
    const int begin = get_group_id(1), end = begin + 1, j = get_global_id(0);
#endif
    for (int start = 0; start < count; start += TILE) {
        const int stop = min(count, start + TILE);
        for (int r = begin; r < end; r++) {
            const int i = left[r];
            __global RESULT *row = out + offset + (PACKED ? (long)i * (2 * columns - i - 1) / 2 : (long)r * columns);
            __global REAL *held = kept + (size_t)r * stride;
#if GROUP == 1
            int j = PACKED ? i : 0;
            for (; j + LANES <= columns; j += LANES)
                strip(a, b, p, q, held + j, row + j, i, j, LANES, stride, start, stop, cells);
            if (j < columns) {
                /* the last columns: a strip that overlaps the one before, with a state of its own, is faster than lone ones */
                if (!PACKED && columns >= LANES)
                    strip(a, b, p, q, held + stride - LANES, row + columns - LANES, i, columns - LANES, LANES, stride,
                          start, stop, cells);
                else
                    strip(a, b, p, q, held + j, row + j, i, j, columns - j, stride, start, stop, cells);
            }
            for (int t = start; t < stop; t++) {
#else
            if (j < columns && j >= PACKED * i)
                strip(a, b, p, q, held + j, row + j, i, j, 1, stride, start, stop, cells);
            for (int t = start; t < stop && i == j; t++) {
#endif
                const REAL own = BETA ? q[(size_t)t * stride + i] : p[(size_t)t * stride + i];
                if (UNIT)
                    row[t * cells + i] = (RESULT)(own == own ? (REAL)1 : own);
            }
        }
    }
}
