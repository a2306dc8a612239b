/* covariance.cl - make a covariance matrix of sums of products of centred columns, of which one triangle is enough.
 *
 *   mean[j]  = (found[0 * width + j] + found[1 * width + j] + ...) / count,   `chunks` terms, in this order
 *   C[r, c]  = C[c, r] = (sums[r * columns + c] - count * mean[r] * mean[c]) * share / (scale[r] * scale[c]),   r <= c
 *
 * rounded to REAL, where count is the rows of the data, share 1 / (count - ddof), and scale[j], a power of two, stands in
 * `found` as pack_centred_squares.cl left it. C may be `sums` itself.
 *
 * One group of SIDE x DOWN items a SIDE x SIDE block on or above the diagonal, blocks[g] = (block row, block column). Reads
 * and writes all run along rows; the turn happens in local memory.
 */
#ifndef SIDE
#define SIDE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#if SIDE % DOWN != 0
#error "SIDE must be whole runs of DOWN"
#endif
#define EACH (SIDE / DOWN)

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void covariance(__global const SUM *sums, __global REAL *C, __global const SUM *restrict found, const int columns,
                const int width, const int chunks, const SUM count, const SUM share, __global const int2 *restrict blocks)
{
    __local REAL block[SIDE][SIDE + 1];
    __local SUM means[2][SIDE], units[2][SIDE];
    const int2 at = blocks[get_group_id(0)];
    const int x = get_local_id(0), y = get_local_id(1), c = at.y * SIDE + x;
    SUM products[EACH];

#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int r = at.x * SIDE + y + i * DOWN;
        products[i] = r <= c && c < columns ? sums[(size_t)r * columns + c] : (SUM)0;
    }
    for (int side = y; side < 2; side += DOWN) {
        const int j = min((side ? at.y : at.x) * SIDE + x, columns - 1);
        SUM total = 0;
#pragma unroll 4
        for (int i = 0; i < chunks; i++)
            total += found[(size_t)i * width + j];
        means[side][x] = total / count;
        units[side][x] = 1 / found[(size_t)(chunks + 1) * width + j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int row = y + i * DOWN, r = at.x * SIDE + row;
        const SUM deviations = products[i] - count * (means[0][row] * means[1][x]);
        const REAL value = deviations * share * (units[0][row] * units[1][x]);
        block[row][x] = value;
        if (r <= c && c < columns)
            C[(size_t)r * columns + c] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int column = y + i * DOWN, r = at.y * SIDE + column, to = at.x * SIDE + x;
        if (r < columns && to < r)
            C[(size_t)r * columns + to] = block[x][column];
    }
}
