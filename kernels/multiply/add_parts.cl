/* add_parts.cl - add up the parts that the slices of a product's last blocks left (compute/shares.py).
 *
 *   C[r * stride + c] = sum over s < slices of parts[((b - whole) * slices + s) * DEEP * WIDE + y * WIDE + x]
 *
 * for every element (y, x) of block b >= whole at (r, c) = (DEEP, WIDE) * blocks[b] + (y, x), where it exists; or C and that
 * sum if `more` is not 0. With SYMMETRIC only where r <= c, and C[c * stride + r] is the same; the turn happens in local
 * memory, so that both are written along rows. With FINISHED sums become covariances elsewhere (finish.clh). One item an
 * element and a fixed order: the bits are the same on every run. Groups of SQUARE x SQUARE items are (squares of a block,
 * blocks from `whole` on).
 */
#ifndef DEEP
#define DEEP 128        /* rows of a block */
#endif
#ifndef WIDE
#define WIDE DEEP       /* columns of a block */
#endif
#ifndef SQUARE
#define SQUARE 16
#endif
#ifndef SYMMETRIC
#define SYMMETRIC 0
#endif
#if DEEP % SQUARE != 0 || WIDE % SQUARE != 0
#error "a block must be whole squares"
#endif

__kernel __attribute__((reqd_work_group_size(SQUARE, SQUARE, 1)))
void add_parts(__global const SUM *restrict parts, __global SUM *restrict C, const int rows, const int columns,
               const int stride, __global const int2 *restrict blocks, const int whole, const int slices, const int more
               FINISH_ARGUMENTS)
{
    __local RESULT square[SQUARE][SQUARE + 1];
    const int x = get_local_id(0), y = get_local_id(1), b = get_group_id(1);
    const int down = (int)get_group_id(0) / (WIDE / SQUARE) * SQUARE, across = (int)get_group_id(0) % (WIDE / SQUARE) * SQUARE;
    const int2 block = blocks[whole + b];
    const int row = block.x * DEEP + down, column = block.y * WIDE + across;
    const int r = row + y, c = column + x;
    const struct finish finish = FINISH;

    if (r < rows && c < columns && (!SYMMETRIC || r <= c)) {
        __global const SUM *part = parts + (size_t)b * slices * DEEP * WIDE + (down + y) * WIDE + across + x;
        SUM sum = part[0];
        for (int s = 1; s < slices; s++)
            sum += part[(size_t)s * DEEP * WIDE];
        sum = more ? C[(size_t)r * stride + c] + sum : sum;
        square[y][x] = RESULT_OF(finish, sum, r, c);
        RESULTS(C)[(size_t)r * stride + c] = square[y][x];
    }
#if SYMMETRIC
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column + y < columns && row + x < column + y)
        RESULTS(C)[(size_t)(column + y) * stride + row + x] = square[x][y];
#endif
}
