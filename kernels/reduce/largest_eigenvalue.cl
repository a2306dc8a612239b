/* largest_eigenvalue.cl - the largest eigenvalue of each symmetric matrix of a block, by Lanczos' method.
 *
 *   out[2 * (first + m)]     = the eigenvalue; NaN where an element of matrix m is NaN or infinite
 *   out[2 * (first + m) + 1] = 1 where it is found to TOLERANCE of itself; 0 where the host must solve the matrix
 *
 * Matrices lie as matrices.clh says; the parts of the method that do not see them are in lanczos.clh. Group g does matrix
 * m = begin + g, with (STEPS + 1) * columns elements of `scratch` for itself: the vectors found so far, and the next.
 *
 * Each step multiplies the last vector by C, makes the product orthogonal to the last two vectors, then to all of them, and
 * so adds a row to a tridiagonal matrix T. An eigenvalue of C lies within r of the largest of T, r being the last
 * `beside` times the last element of its eigenvector. Where r is small the search ends; after STEPS steps it begins anew,
 * from the eigenvector so far. With vectors from a start that has a share of every eigenvector, and only the unluckiest has
 * not, the eigenvalue is the largest; all is done from STARTS starts, `starts[s * columns + j]`, and the larger counts.
 *
 * On a CPU one item does a matrix, reading its triangle once a product. On a GPU strips of items take a row each. What
 * decides is the same for all items of a group, and barriers stand outside of every condition: all is one loop of steps.
 */
#ifndef STEPS
#define STEPS 64       /* steps until the search begins anew, and vectors that are kept */
#endif
#ifndef CYCLES
#define CYCLES 6       /* how often it may begin */
#endif
#ifndef STARTS
#define STARTS 2       /* starting vectors */
#endif
#if SUM_BITS == 64
#define TOLERANCE ((SUM)1e-12)
#define FARTHEST ((SUM)1e90)
#else
#define TOLERANCE ((SUM)1e-5)
#define FARTHEST ((SUM)1e9)
#endif

/* y = C x */
PART void product(__global const REAL *matrix, __global const SUM *restrict x, __global SUM *restrict y, const int columns,
                  __local SUM *room)
{
#if GROUP == 1
    for (int j = 0; j < columns; j++)
        y[j] = 0;
    for (int i = 0; i < columns; i++) {
        __global const REAL *row = matrix + AT(i);
        const SUM factor = x[i];
        SUM sum[LANES];
        for (int l = 0; l < LANES; l++)
            sum[l] = 0;
        int j = i + 1;
        for (; j + LANES <= columns; j += LANES)
#pragma unroll
            for (int l = 0; l < LANES; l++) {
                const SUM element = row[j + l];
                sum[l] += element * x[j + l];
                y[j + l] += element * factor;
            }
        for (; j < columns; j++) {
            sum[0] += row[j] * x[j];
            y[j] += row[j] * factor;
        }
        for (int l = 1; l < LANES; l++)
            sum[0] += sum[l];
        y[i] += sum[0] + row[i] * factor;
    }
#else
    EACH(j) {
        /* neighbouring items have neighbouring columns, and of a whole matrix that is all there is to do */
        SUM sum = 0;
        const int end = PACKED ? j + 1 : columns;
        for (int i = 0; i < end; i++)
            sum += matrix[AT(i) + j] * x[i];
        y[j] = sum;
    }
#if PACKED
    const int item = get_local_id(0), lane = item % STRIP;
    for (int begin = 0; begin < columns; begin += BATCH) {
        for (int r = item / STRIP; r < BATCH && begin + r < columns; r += GROUP / STRIP) {
            SUM sum = 0;
            for (int j = begin + r + 1 + lane; j < columns; j += STRIP)
                sum += matrix[AT(begin + r) + j] * x[j];
            room[r * (STRIP + 1) + lane] = sum;
        }
        MEET;
        for (int r = item; r < BATCH && begin + r < columns; r += GROUP) {
            SUM sum = 0;
            for (int l = 0; l < STRIP; l++)
                sum += room[r * (STRIP + 1) + l];
            y[begin + r] += sum;
        }
        MEET;
    }
#endif
#endif
}

/* notes in `seen` whether an element is not finite, and whether one is not 0 */
PART void look(__global const REAL *matrix, const int columns, __local int *seen)
{
    for (int i = 0; i < columns; i++) {
        __global const REAL *row = matrix + AT(i);
        for (int j = i + (int)get_local_id(0); j < columns; j += GROUP) {
            if (row[j] - row[j] != 0)
                seen[0] = 1;
            if (row[j] != 0)
                seen[1] = 1;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void largest_eigenvalue(__global const REAL *restrict block, __global const SUM *restrict starts, __global SUM *scratch,
                        __global SUM *restrict out, const int columns, const ulong size, const ulong begin,
                        const int first)
{
    __local SUM diagonal[STEPS], beside[STEPS], down[STEPS], up[STEPS], vector[STEPS], share[STEPS], found[3];
    __local SUM room[BATCH * (STRIP + 1) + GROUP];
    __local int seen[2];
    const int item = get_local_id(0);
    __global const REAL *matrix = block + (begin + get_group_id(0)) * size;
    __global SUM *V = scratch + get_group_id(0) * (size_t)(STEPS + 1) * columns;
    SUM best = 0, sure = 1, value = 0, scale = 0;
    int ordinary = 1, start = 0, cycle = 0, k = 0;

    if (item == 0)
        seen[0] = seen[1] = 0;
    while (start < STARTS) {
        if (k == 0 && cycle == 0) {
            value = -(SUM)INFINITY;
            EACH(j)
                V[j] = starts[start * columns + j];
        }
        MEET;
        __global SUM *w = V + (size_t)(k + 1) * columns;
        product(matrix, V + (size_t)k * columns, w, columns, room);
        MEET;
        const SUM length = inner_product(w, w, columns, room);
        if (k == 0 && cycle == 0)
            ordinary = length > 1 / (FARTHEST * FARTHEST) && length < FARTHEST * FARTHEST;
        scale = length > scale ? length : scale;
        /* the last two have nearly all of it, and what the first time leaves is small */
        SUM along = 0;
        for (int time = 0; time < 2; time++) {
            const int from = time == 0 && k > 0 ? k - 1 : 0;
            along += orthogonalise(V + (size_t)from * columns, w, k + 1 - from, columns, share, room);
        }
        const SUM next = sqrt(inner_product(w, w, columns, room));
        if (item == 0) {
            diagonal[k] = along;
            beside[k] = next;
        }
        k++;
        /* no direction is left: what has been found holds every eigenvector that the start has a share of */
        const int whole = k == columns || !(next > columns * EPSILON * sqrt(scale));
        const int full = k == STEPS;
        const int judged = whole || full || (k < 8 ? k % 2 == 0 : k % 4 == 0);
        if (item == 0 && judged && ordinary) {
            found[0] = top_value(diagonal, beside, k, value);
            found[1] = 1 / sqrt(top_vector(diagonal, beside, k, found[0], down, up, vector));
            found[2] = next * magnitude(vector[k - 1]) * found[1];
        }
        MEET;
        int over = !ordinary;
        if (judged && ordinary) {
            value = found[0];
            over = whole || found[2] <= TOLERANCE * magnitude(value);
        }
        if (!over && !full)
            EACH(j)
                w[j] /= next;
        if (!over && full) {
            /* the eigenvector so far is where the next cycle begins */
            EACH(j) {
                SUM sum = 0;
                for (int i = 0; i < k; i++)
                    sum += vector[i] * V[(size_t)i * columns + j];
                V[j] = sum * found[1];
            }
            k = 0;
            cycle++;
        }
        if (over || cycle == CYCLES) {
            sure = over ? sure : (SUM)0;
            best = start == 0 || value > best ? value : best;
            start = ordinary ? start + 1 : STARTS;
            k = cycle = 0;
        }
    }
    if (!ordinary)
        look(matrix, columns, seen);
    MEET;
    if (item == 0) {
        if (!ordinary) {
            best = seen[0] ? (SUM)NAN : (SUM)0;
            sure = seen[0] || !seen[1];
        }
        __global SUM *at = out + 2 * (first + begin + get_group_id(0));
        at[0] = best;
        at[1] = sure;
    }
}
