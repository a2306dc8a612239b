/* pack_centred_squares.cl - centre and scale a matrix on its way into panels as pack_centred.cl does, with local memory.
 *
 *   panels[(p * rows_padded + k) * PANEL + j] = z(k, p * PANEL + j)                         rounded to REAL
 *   found[c * width + j] = sum of z(k, j) over the rows k of chunk c: c * chunk <= k < (c + 1) * chunk
 *   found[chunks * width + j], found[(chunks + 1) * width + j] = origin and scale of column j
 *
 * where z, origin and scale are those of centring.clh. A slab of rows after the first has `more` not 0: its sums are added
 * to those that are there. The sums tell what the rounding of the origin left in the mean; if MISSING, z is 0 where the
 * source is NaN, and they are sums of z as it is rounded to REAL. chunk is a multiple of SQUARE.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE columns; packing.clh says how it goes about it. Writes run along a panel.
 */
#ifndef PANEL
#define PANEL SQUARE
#endif
#if PANEL % SQUARE != 0
#error "a panel must be whole squares"
#endif

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(PACK_ARGUMENTS(REAL))
{
    PACK_MEMORY(square, sums);
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE;
    __global REAL *out = panels + (size_t)(first / PANEL) * rows_padded * PANEL + first % PANEL;
    struct packing p = begin_packing(source, panels, table, found, columns, rows, rows_padded, chunk, measured, count, more,
                                     row_stride, column_stride, square, sums);

    for (int at = p.begin; at < p.end; at += SPAN) {
        SOURCE now[EACH];
        next_span(now, &p, at, square);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int k = at + ROW(i);
            const REAL z = k < rows && first + x < columns ? taken(now[i], &p.centre, &p.sum) : (REAL)0;
            if (k < rows_padded)
                out[(size_t)k * PANEL + x] = z;
        }
    }
    put_residue(found, p.sum, more, sums);
}
