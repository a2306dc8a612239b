/* multiply_gpu.cl - C = A B for each pair of matrices of two batches on a graphics card.
 *
 * What multiply.cl computes, with nearly the same arguments; after group_gpu.clh, tile_gpu.clh (or that of tensor cores in its
 * place) and answer_gpu.clh. `deep` inner indices of both operands at a time come to local memory, neighbouring items reading
 * neighbouring elements whichever way a matrix lies; then each item adds to its tile.
 *
 *   scratch   local, for each matrix of the group `room` elements: rows of both operands, or a stripe of C
 */

#define READS 8

/* panel[k * width + r] = at[r * step + k * inner_step] for r < length, k < count; 0 up to whole steps of k */
static inline void load(__global const SOURCE *at, __local REAL *panel, const int length, const int count, const long step,
                        const long inner_step)
{
    const int inner_first = inner_step == 1, width = WIDTH_OF(length);
    const int near = inner_first ? count : length, far = inner_first ? length : count;
    /* steps of ITEMS elements, without a division each */
    const int across = ITEMS % near, down = ITEMS / near;
    int n = get_local_id(0) % near, f = get_local_id(0) / near;
    while (f < far) {
        /* several are on their way at a time */
        REAL value[READS];
        int place[READS];
#pragma unroll
        for (int i = 0; i < READS; i++) {
            const int r = inner_first ? f : n, k = inner_first ? n : f;
            place[i] = f < far ? k * width + r : -1;
            value[i] = f < far ? at[r * step + k * inner_step] : 0;
            n += across;
            f += down;
            if (n >= near) {
                n -= near;
                f++;
            }
        }
#pragma unroll
        for (int i = 0; i < READS; i++)
            if (place[i] >= 0)
                panel[place[i]] = value[i];
    }
    if (count % STEP)
        for (int r = get_local_id(0); r < length; r += ITEMS)
            for (int k = count; k % STEP; k++)
                panel[k * width + r] = 0;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, MATRICES, 1)))
void multiply(__global const SOURCE *restrict left, __global const SOURCE *restrict right, __global ANSWER *restrict C,
              __local ALIGNED *restrict scratch, const int count, const int rows, const int columns, const int inner,
              const int deep, const int room, const long left_begin, const long left_matrix, const long row_step,
              const long left_step, const long right_begin, const long right_matrix, const long right_step,
              const long column_step)
{
    const int item = get_local_id(0), m = get_group_id(0) * MATRICES + get_local_id(1), wanted = m < count;
    __global const SOURCE *const A = left + left_begin + min(m, count - 1) * left_matrix;
    __global const SOURCE *const B = right + right_begin + min(m, count - 1) * right_matrix;
    __local SUM *const mine = (__local SUM *)scratch + get_local_id(1) * room;
    __local REAL *const lefts = (__local REAL *)mine;
    __local REAL *const rights = lefts + (deep + STEP - 1) / STEP * STEP * WIDTH_OF(rows);
    struct Place place;
    const int busy = place_in_grid(rows, columns, &place);
    SUM sum[LINES][EACH];

#pragma unroll
    for (int n = 0; n < LINES * EACH; n++)
        sum[n / EACH][n % EACH] = 0;
    for (int k = 0; k < inner; k += deep) {
        const int here = min(deep, inner - k);
        SYNC;
        load(A + k * left_step, lefts, rows, here, row_step, left_step);
        load(B + k * right_step, rights, columns, here, column_step, right_step);
        SYNC;
        if (busy)
            add_products(lefts + place.left, rights + place.right, WIDTH_OF(rows), WIDTH_OF(columns), here, place.tiles,
                         sum);
    }
    write_answer(C + (size_t)m * rows * columns, mine, sum, place, busy, rows, columns, min(room / columns, rows), 0,
                 wanted);
}
