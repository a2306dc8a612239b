/* pack_centred_split.cl - centre and scale a matrix on its way into panels of halves, which split_mma.clh describes.
 *
 *   z(k, j) = (source[(o + k) * row_stride + j * column_stride] - origin[j]) * scale[j]     in SUM
 *   hi(k, j) + lo(k, j) = SPLIT_SCALE * z(k, j)              hi rounded to 11 bits, lo what that left, to 11 bits
 *   panels[((p * rows_padded / 2 + k / 2) * 2 + part) * PANEL + place]  = part (0: hi, 1: lo) of row k in the low half,
 *                                                                         of row k + 1 in the high half, k even
 *   residue[(first_chunk + c) * width + j] = sum of z(k, j) over the rows k of chunk c: c * chunk <= k < (c + 1) * chunk
 *
 * where place is 32 * (j / 32) + SPLIT_PLACE(j % 32, k / 2) for column j of panel p.
 * For the rest see pack_centred.cl: scales are powers of two with |z| < 1, and z is 0 outside the matrix. rows_padded and
 * chunk are multiples of SQUARE.
 *
 * One group of SQUARE x DOWN items a chunk and SQUARE columns, as in pack_centred_squares.cl, but an item has two rows at a
 * time.
 */
#ifndef SQUARE
#define SQUARE 32
#endif
#ifndef DOWN
#define DOWN 8
#endif
#ifndef PANEL
#define PANEL SQUARE
#endif
#if PANEL % SQUARE != 0 || SQUARE != 32 || SQUARE / 2 % DOWN != 0
#error "SQUARE must be 32, a panel whole squares, and DOWN items a divisor of 16"
#endif

/* A half lies in bytes here: a compiler may take it for granted that a half and a ushort are never the same memory. */
static inline uint bits_of(const REAL x)
{
    uchar bytes[2] __attribute__((aligned(2)));
    vstore_half_rte(x, 0, (half *)bytes);
    return bytes[0] | (uint)bytes[1] << 8;
}

static inline REAL value_of(const uint word)
{
    const uchar bytes[2] __attribute__((aligned(2))) = {word & 255, word >> 8 & 255};
    return vload_half(0, (const half *)bytes);
}

__kernel __attribute__((reqd_work_group_size(SQUARE, DOWN, 1)))
void pack_centred(__global const SOURCE *restrict source, __global uint *restrict panels,
                  __global const SUM *restrict centre, __global SUM *restrict residue, const int columns, const int rows,
                  const int rows_padded, const int chunk, const int first_chunk, const long row_stride,
                  const long column_stride)
{
    __local SOURCE square[SQUARE][SQUARE + 1];
    __local SUM sums[DOWN][SQUARE];
    const int x = get_local_id(0), first = get_group_id(0) * SQUARE, width = get_num_groups(0) * SQUARE;
    const int turned = column_stride != 1;
    const SUM origin = centre[first + x], scale = centre[width + first + x];
    const int end = min((int)(get_group_id(1) + 1) * chunk, rows_padded);
    __global const SOURCE *from = source + (long)get_global_offset(1) * row_stride;
    SUM sum = 0;

    for (int begin = get_group_id(1) * chunk; begin < end; begin += SQUARE) {
        for (int y = get_local_id(1); y < SQUARE; y += DOWN) {
            const int k = turned ? x : y, j = turned ? y : x;
            if (begin + k < rows && first + j < columns)
                square[k][j] = from[(begin + k) * row_stride + (first + j) * column_stride];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int pair = get_local_id(1); pair < SQUARE / 2; pair += DOWN) {
            const int row = begin / 2 + pair;
            __global uint *out = panels + ((size_t)(first / PANEL) * (rows_padded / 2) + row) * 2 * PANEL + first % PANEL;
            uint high = 0, low = 0;
            for (int i = 0; i < 2; i++) {
                const int k = 2 * pair + i, inside = begin + k < rows && first + x < columns;
                const SUM z = inside ? (square[k][x] - origin) * scale : (SUM)0;
                const uint bits = bits_of((REAL)(z * SPLIT_SCALE));
                sum += z;
                high |= bits << 16 * i;
                low |= bits_of((REAL)(z * SPLIT_SCALE - value_of(bits))) << 16 * i;
            }
            out[SPLIT_PLACE(x, row)] = high;
            out[PANEL + SPLIT_PLACE(x, row)] = low;
        }
        /* the next square fills local memory that a slower item may still read */
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sums[get_local_id(1)][x] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(1) == 0) {
        for (int i = 1; i < DOWN; i++)
            sum += sums[i][x];
        residue[(size_t)(first_chunk + get_group_id(1)) * width + first + x] = sum;
    }
}
