/* gram_gpu.cl - C = X'X, or co-moments or covariances of the columns, of each matrix of a batch on a graphics card.
 *
 * What gram.cl computes, with nearly the same arguments; after centre.clh, group_gpu.clh, tile_gpu.clh (or that of tensor
 * cores in its place) and answer_gpu.clh.
 *
 * Each item of a matrix reads one column, of every S-th row, S = ITEMS / columns: neighbours read neighbouring elements, and an
 * item knows the origin and the scale of its column. So rows come to local memory centred, `deep` of them at a time; then the
 * items take the tiles of the upper triangle. A matrix that is centred is read twice, the second time from a cache; if WHOLE it
 * lies in local memory from the first time on, where each item centres what it has read.
 *
 * If COVARIANCE, co-moments are multiplied by `share` and by what the columns were divided by, and in place of `known`
 * odd[m] is 1 where a column of matrix m is not ordinary, or a covariance past the range of float: the host does it again.
 *
 *   WHOLE     1 where CENTRED is: `deep` is all rows, and REAL holds what SOURCE does
 *   scratch   local, for each matrix of the group `room` elements of SUM: rows, or a stripe of C
 *   tables    local, if CENTRED: origins, scales, and means of z, `columns` each, and 3 * ITEMS sums of parts of columns
 */
#ifndef WHOLE
#define WHOLE 0
#endif
#if WHOLE && (!CENTRED || REAL_BITS < SOURCE_BITS)
#error "WHOLE is for what is centred, in a REAL that is not narrower than SOURCE"
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, MATRICES, 1)))
void gram(__global const SOURCE *restrict source, __global ANSWER *restrict C,
#if COVARIANCE
          __global uchar *restrict odd, __local ALIGNED *restrict tables,
#elif CENTRED
          __global SUM *restrict known, __local ALIGNED *restrict tables,
#endif
          __local ALIGNED *restrict scratch, const int count, const int rows, const int columns, const int deep, const int room,
          const long begin, const long matrix_step, const long row_step, const long column_step
#if COVARIANCE
          , const SUM share
#endif
          )
{
    const int item = get_local_id(0), m = get_group_id(0) * MATRICES + get_local_id(1), wanted = m < count;
    const int width = WIDTH_OF(columns);
    const int turns = ITEMS / columns, turn = item / columns, column = item % columns, reads = turn < turns;
    /* a group may have more matrices than are left: the last is done again, and not written */
    __global const SOURCE *const x = source + begin + min(m, count - 1) * matrix_step + column * column_step;
    __local SUM *const mine = (__local SUM *)scratch + get_local_id(1) * room;
    __local REAL *const panel = (__local REAL *)mine;

#if COVARIANCE
    __local int doubts[MATRICES];
    __local int *const doubt = doubts + get_local_id(1);
    if (item == 0)
        *doubt = 0;
#elif CENTRED
    __global SUM *const told = known + (size_t)m * 3 * columns;
#endif
#if CENTRED
    __local SUM *const table = (__local SUM *)tables + get_local_id(1) * 3 * (columns + ITEMS);
    __local SUM *const totals = table + 3 * columns, *const lows = totals + ITEMS, *const highs = lows + ITEMS;
    if (reads) {
        SUM total = 0, low = x[0], high = low;
#pragma unroll 8
        for (int k = turn; k < rows; k += turns) {
            const SUM value = x[k * row_step];
#if WHOLE
            panel[k * width + column] = value;
#endif
            total += value;
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        totals[item] = total;
        lows[item] = low;
        highs[item] = high;
    }
    SYNC;
    if (item < columns) {
        SUM total = totals[item], low = lows[item], high = highs[item];
        for (int s = 1; s < turns; s++) {
            const SUM l = lows[s * columns + item], h = highs[s * columns + item];
            total += totals[s * columns + item];
            low = l < low ? l : low;
            high = h > high ? h : high;
        }
        const int ordinary = is_ordinary(total, low, high);
        const int reach = REAL_BITS == 64 ? 0 : reach_of(high - low);
        table[item] = origin_of(total, low, high, rows);
        table[columns + item] = scale_of(ordinary ? reach : 0);
        table[2 * columns + item] = ordinary ? (SUM)0 : (SUM)NAN;
#if COVARIANCE
        if (!ordinary)
            *doubt = 1;
#else
        if (wanted) {
            told[item] = table[item];
            told[columns + item] = reach;
        }
#endif
    }
    SYNC;
    const SUM origin = table[column], scale = table[columns + column];
    SUM residue = 0;
#endif

    struct Place place;
    const int busy = place_in_triangle(columns, &place);
    SUM sum[LINES][EACH];
#pragma unroll
    for (int n = 0; n < LINES * EACH; n++)
        sum[n / EACH][n % EACH] = 0;

    for (int k = 0; k < rows; k += deep) {
        const int here = min(deep, rows - k), filled = (here + STEP - 1) / STEP * STEP;
        SYNC;
        if (reads)
#pragma unroll 8
            for (int r = turn; r < filled; r += turns) {
#if CENTRED
                const SUM value = r >= here ? origin : WHOLE ? (SUM)panel[r * width + column] : (SUM)x[(k + r) * row_step];
                const SUM z = (value - origin) * scale;
                residue += z;
#else
                const REAL z = r < here ? x[(k + r) * row_step] : 0;
#endif
                panel[r * width + column] = (REAL)z;
            }
        SYNC;
        /* columns behind the last hold anything, and meet nothing but their own sums */
        if (busy)
            add_products(panel + place.left, panel + place.right, width, width, here, place.tiles, sum);
    }

#if CENTRED
    if (reads)
        totals[item] = residue;
    SYNC;
    if (item < columns) {
        SUM mean = table[2 * columns + item];
        for (int s = 0; s < turns; s++)
            mean += totals[s * columns + item];
        mean = mean / rows;
        table[2 * columns + item] = mean;
#if COVARIANCE
        table[columns + item] = 1 / table[columns + item];
#else
        if (wanted)
            told[2 * columns + item] = mean;
#endif
    }
    SYNC;
    if (busy)
#pragma unroll
        for (int n = 0; n < LINES * EACH; n++) {
            const int r = min(place.row + n / EACH, columns - 1);
            const int c = min(place.column + COLUMN_AT(n % EACH), columns - 1);
            const SUM value = sum[n / EACH][n % EACH] - table[2 * columns + r] * table[2 * columns + c] * rows;
#if COVARIANCE
            sum[n / EACH][n % EACH] = value * share * (table[columns + r] * table[columns + c]);
            /* a column may be beyond the last, and hold anything */
            const ANSWER answer = sum[n / EACH][n % EACH];
            if (answer - answer != 0 && place.row + n / EACH < columns && place.column + COLUMN_AT(n % EACH) < columns)
                *doubt = 1;
#else
            sum[n / EACH][n % EACH] = value;
#endif
        }
#endif
    write_answer(C + (size_t)m * columns * columns, mine, sum, place, busy, columns, columns, min(room / columns, columns),
                 1, wanted);
#if COVARIANCE
    if (wanted && item == 0)
        odd[m] = *doubt;
#endif
}
