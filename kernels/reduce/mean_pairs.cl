/* mean_pairs.cl - the sum and the number of the elements above the diagonal of each matrix, those that are not NaN.
 *
 *   partial[((first + m) * S + s) * 2]     = sum of C_m(i, j) over j > i, rows i of slice s
 *   partial[((first + m) * S + s) * 2 + 1] = how many they are
 *
 * for matrix m = get_group_id(0) of the block, which lies as matrices.clh says, and slice s = get_group_id(1) of
 * S = get_num_groups(1); the host adds up the slices and divides.
 *
 * A row is summed by itself before it joins the others, so no sum is longer than `columns` terms.
 */

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void mean_pairs(__global const REAL *restrict block, __global SUM *restrict partial, const int columns, const ulong size,
                const int first)
{
    const int item = get_local_id(0), lane = item % STRIP, slices = get_num_groups(1);
    __global const REAL *matrix = block + get_group_id(0) * size;
    LANE totals = 0, numbers = 0;
    SUM total = 0, number = 0;

    for (int i = get_group_id(1) * (GROUP / STRIP) + item / STRIP; i < columns; i += slices * (GROUP / STRIP)) {
        __global const REAL *row = matrix + AT(i);
        const int tail = columns - (columns - i - 1) % LANES;
        LANE sum = 0;
        FEW here = 0;
        for (int j = i + 1 + lane * LANES; j < tail; j += STRIP * LANES) {
            const FEW x = *(__global const LOOSE *)(row + j);
            sum += wide(x == x ? x : (FEW)0);
            here += x == x ? (FEW)1 : (FEW)0;
        }
        totals += sum;
        numbers += wide(here);
        SUM rest = 0;
        for (int j = tail + lane; j < columns; j += STRIP) {
            const REAL x = row[j];
            rest += x == x ? (SUM)x : (SUM)0;
            number += x == x ? (SUM)1 : (SUM)0;
        }
        total += rest;
    }
    total += sum_of(totals);
    number += sum_of(numbers);

#if GROUP > 1
    __local SUM sums[GROUP], counts[GROUP];
    sums[item] = total;
    counts[item] = number;
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) {
            sums[item] += sums[item + reach];
            counts[item] += counts[item + reach];
        }
    }
    total = sums[0];
    number = counts[0];
#endif
    if (item == 0) {
        __global SUM *out = partial + ((first + get_group_id(0)) * slices + get_group_id(1)) * 2;
        out[0] = total;
        out[1] = number;
    }
}
