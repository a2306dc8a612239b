/* two_pass.cl - the moments of one column with PANEL others, in two passes about values of the pair's own rows.
 *
 * For columns i = tiles[t].x and j = tiles[t].y * PANEL + lane, with the first row that both have as origins x0 and y0:
 *
 *   found[(t * 7 + f) * PANEL + lane],   f = 0, 1: x0, y0
 *                                        f = 2, 3: the means of z = (x - x0) * scale and of w = (y - y0) * scale
 *                                        f = 4, 5: the sums of (z - mean)^2 and of (w - mean)^2
 *                                        f = 6:    the sum of (z - mean) (w - mean)
 *
 * over the rows that both have. A sum of squares is exactly 0 where all values are equal, and NaN where they are not but their
 * squares are too small for any number. Where no row is common, all is 0.
 *
 * panels as multiply/pack.cl lays them out, with NaN where a value is missing; scales, one a column, are powers of two. For
 * the pairs that a difference of sums would get wrong: each costs some hundred times what it does in a product of matrices,
 * but neighbours of a pair that is asked for come for nothing. One item does PANEL / GROUP lanes of a tile: on a CPU, where
 * GROUP is 1, in vectors of WIDTH, on a GPU one by one.
 */
#ifndef PANEL
#define PANEL 16
#endif
#ifndef GROUP
#define GROUP 1         /* items of a group */
#endif
#if GROUP == 1
#define LANE VECTOR
#define STRIDE WIDTH
#else
#define LANE REAL
#define STRIDE 1
#endif
#if PANEL % (GROUP * STRIDE) != 0
#error "PANEL must be a multiple of GROUP, and of WIDTH where that is 1"
#endif
#define OWN (PANEL / GROUP / STRIDE)
#define STEP (GROUP * STRIDE)
#define LOOKED 64       /* rows between two looks whether each lane has its origins */
#define AT(from, o) (*(__global LANE *)((from) + (o) * STEP))
#define READ(from, o) (*(__global const LANE *)((from) + (o) * STEP))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void two_pass(__global const REAL *restrict panels, __global const REAL *restrict scales, __global const int2 *restrict tiles,
              __global REAL *restrict found, const int rows)
{
    const int2 tile = tiles[get_group_id(0)];
    const int lane = get_local_id(0);
    __global const REAL *left = panels + (size_t)(tile.x / PANEL) * rows * PANEL + tile.x % PANEL;
    __global const REAL *right = panels + (size_t)tile.y * rows * PANEL + lane;
    __global REAL *out = found + (size_t)get_group_id(0) * 7 * PANEL + lane;
    const LANE zero = (LANE)(0), one = (LANE)(1), scale = (LANE)(scales[tile.x]);
    LANE x0[OWN], y0[OWN], n[OWN], x_mean[OWN], y_mean[OWN], scale_right[OWN];
    LANE x_moved[OWN], y_moved[OWN], x_squares[OWN], y_squares[OWN], products[OWN], x_rest[OWN], y_rest[OWN];

#pragma unroll
    for (int o = 0; o < OWN; o++) {
        x0[o] = y0[o] = n[o] = x_mean[o] = y_mean[o] = x_moved[o] = y_moved[o] = zero;
        x_squares[o] = y_squares[o] = products[o] = x_rest[o] = y_rest[o] = zero;
        scale_right[o] = READ(scales + tile.y * PANEL + lane, o);
    }
    for (int k = 0, without = 1; k < rows && without; k += LOOKED) {
        for (int r = k; r < min(k + LOOKED, rows); r++) {
            const REAL x = left[(size_t)r * PANEL];
            if (x != x)
                continue;
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                const LANE y = READ(right + (size_t)r * PANEL, o);
                x0[o] = y == y ? (n[o] == zero ? (LANE)(x) : x0[o]) : x0[o];
                y0[o] = y == y ? (n[o] == zero ? y : y0[o]) : y0[o];
                n[o] = y == y ? one : n[o];
            }
        }
        without = 0;
#pragma unroll
        for (int l = 0; l < OWN * STRIDE; l++)
            without += ((REAL *)n)[l] == 0;
    }
#pragma unroll
    for (int o = 0; o < OWN; o++)
        n[o] = zero;
    for (int k = 0; k < rows; k++) {
        const REAL x = left[(size_t)k * PANEL];
        if (x != x)
            continue;
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            const LANE y = READ(right + (size_t)k * PANEL, o);
            const LANE z = y == y ? ((LANE)(x) - x0[o]) * scale : zero;
            const LANE w = y == y ? (y - y0[o]) * scale_right[o] : zero;
            n[o] += y == y ? one : zero;
            x_mean[o] += z;
            y_mean[o] += w;
            x_moved[o] = z == zero ? x_moved[o] : one;
            y_moved[o] = w == zero ? y_moved[o] : one;
        }
    }
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        n[o] = n[o] == zero ? one : n[o];
        x_mean[o] /= n[o];
        y_mean[o] /= n[o];
    }
    for (int k = 0; k < rows; k++) {
        const REAL x = left[(size_t)k * PANEL];
        if (x != x)
            continue;
#pragma unroll
        for (int o = 0; o < OWN; o++) {
            const LANE y = READ(right + (size_t)k * PANEL, o);
            const LANE z = y == y ? ((LANE)(x) - x0[o]) * scale - x_mean[o] : zero;
            const LANE w = y == y ? (y - y0[o]) * scale_right[o] - y_mean[o] : zero;
            x_squares[o] = z * z + x_squares[o];
            y_squares[o] = w * w + y_squares[o];
            products[o] = z * w + products[o];
            x_rest[o] += z;
            y_rest[o] += w;
        }
    }
    /* the rests are what rounding left in the means */
#pragma unroll
    for (int o = 0; o < OWN; o++) {
        const LANE squares = x_squares[o] - x_rest[o] * x_rest[o] / n[o];
        const LANE others = y_squares[o] - y_rest[o] * y_rest[o] / n[o];
        const LANE product = products[o] - x_rest[o] * y_rest[o] / n[o];
        AT(out, o) = x0[o];
        AT(out + PANEL, o) = y0[o];
        AT(out + 2 * PANEL, o) = x_mean[o];
        AT(out + 3 * PANEL, o) = y_mean[o];
        AT(out + 4 * PANEL, o) = x_moved[o] == zero ? zero : (squares > zero ? squares : (LANE)(NAN));
        AT(out + 5 * PANEL, o) = y_moved[o] == zero ? zero : (others > zero ? others : (LANE)(NAN));
        AT(out + 6 * PANEL, o) = x_moved[o] == zero ? zero : (y_moved[o] == zero ? zero : product);
    }
}
