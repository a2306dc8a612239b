/* quadratic_form.cl - w'Cw of each symmetric matrix of a block, from its upper triangle.
 *
 *   partial[(first + m) * S + s] = sum of w_i * (w_i * C_m(i, i) + 2 * sum of w_j * C_m(i, j) over j > i), rows i of slice s
 *
 * for matrix m = get_group_id(0) of the block, which lies as matrices.clh says, and slice s = get_group_id(1) of
 * S = get_num_groups(1); the host adds up the slices. The weights of matrix m are those from
 * weights[m * weight_step] on; weight_step is 0 where all have the same. An element with a weight of 0 is left out, so a
 * NaN there does no harm. The order of the sums is that of mean_pairs.cl.
 */

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void quadratic_form(__global const REAL *restrict block, __global const SUM *restrict weights, __global SUM *restrict partial,
                    const int columns, const ulong size, const int weight_step, const int first)
{
    const int item = get_local_id(0), lane = item % STRIP, slices = get_num_groups(1);
    __global const REAL *matrix = block + get_group_id(0) * size;
    __global const SUM *w = weights + get_group_id(0) * (size_t)weight_step;
    LANE totals = 0;
    SUM total = 0;

    for (int i = get_group_id(1) * (GROUP / STRIP) + item / STRIP; i < columns; i += slices * (GROUP / STRIP)) {
        const SUM weight = w[i];
        if (weight == 0)
            continue;
        __global const REAL *row = matrix + AT(i);
        const int tail = columns - (columns - i - 1) % LANES;
        LANE sums = 0;
        SUM sum = lane == 0 ? weight * row[i] / 2 : (SUM)0;
        for (int j = i + 1 + lane * LANES; j < tail; j += STRIP * LANES) {
            const LANE other = *(__global const LOOSE_LANE *)(w + j);
            sums += other == 0 ? (LANE)0 : wide(*(__global const LOOSE *)(row + j)) * other;
        }
        for (int j = tail + lane; j < columns; j += STRIP)
            sum += w[j] == 0 ? (SUM)0 : row[j] * w[j];
        totals += sums * (2 * weight);
        total += sum * (2 * weight);
    }
    total += sum_of(totals);

#if GROUP > 1
    __local SUM sums[GROUP];
    sums[item] = total;
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach)
            sums[item] += sums[item + reach];
    }
    total = sums[0];
#endif
    if (item == 0)
        partial[(first + get_group_id(0)) * slices + get_group_id(1)] = total;
}
