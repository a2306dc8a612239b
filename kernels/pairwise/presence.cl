/* presence.cl - which values of a matrix are there: one bit each, 32 rows of a column in a word.
 *
 *   bits[w * columns + j], bit b, is 1 where source[(w * 32 + b) * row_stride + j * column_stride] is not NaN
 *
 * and 0 behind the last row. A word of every column lies side by side, so that neighbouring items or lanes write, and count
 * (common_rows.cl), along memory.
 *
 * One item does COLUMNS / GROUP columns of one word; groups are (columns / COLUMNS, words), rounded up.
 */
#ifndef COLUMNS
#define COLUMNS 64      /* columns of a group */
#endif
#ifndef GROUP
#define GROUP 1         /* items of a group: 1 on a CPU, where the compiler makes vectors of the columns */
#endif
#if COLUMNS % GROUP != 0
#error "COLUMNS must be a multiple of GROUP"
#endif
#define OWN (COLUMNS / GROUP)
/* rows that are read before any is looked at: a GPU waits for memory once for all of them */
#if GROUP == 1
#define AT_ONCE
#else
#define AT_ONCE _Pragma("unroll 8")
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void presence(__global const SOURCE *restrict source, __global uint *restrict bits, const int columns, const int rows,
              const long row_stride, const long column_stride)
{
    const int first = get_group_id(0) * COLUMNS + get_local_id(0), begin = get_group_id(1) * 32;
    const int count = min(32, rows - begin);
    __global const SOURCE *in = source + begin * row_stride + first * column_stride;
    __global uint *out = bits + (size_t)get_group_id(1) * columns + first;
    const int whole = get_group_id(0) * COLUMNS + COLUMNS <= columns;
    uint word[OWN];
    for (int o = 0; o < OWN; o++)
        word[o] = 0;

    if (whole && column_stride == 1)
        AT_ONCE for (int b = 0; b < count; b++, in += row_stride)
#pragma unroll
            for (int o = 0; o < OWN; o++) {
                const SOURCE x = in[o * GROUP];
                word[o] |= (uint)(x == x) << b;
            }
    else
        for (int o = 0; o < OWN; o++)
            if (first + o * GROUP < columns)
                for (int b = 0; b < count; b++) {
                    const SOURCE x = in[b * row_stride + o * GROUP * column_stride];
                    word[o] |= (uint)(x == x) << b;
                }
    for (int o = 0; o < OWN; o++)
        if (first + o * GROUP < columns)
            out[o * GROUP] = word[o];
}
