/* transpose_direct.cl - turn a matrix over: out[c, r] = in[r, c], element by element.
 *
 * in: rows x columns, in[r * columns + c]; out: columns x rows, out[c * rows + r].
 * The start of the transpose ladder: neighbouring items read neighbours but write `rows` elements apart, so that each
 * write of a warp touches a line of its own. transpose_tile.cl mends that, and has the same groups of SIDE x DOWN items,
 * each with SIDE / DOWN elements of a SIDE x SIDE block, so the work is equal.
 */
#ifndef SIDE
#define SIDE 32        /* side of the block that a group turns over */
#endif
#ifndef DOWN
#define DOWN 8         /* rows of items in a group; a divisor of SIDE */
#endif
#if SIDE % DOWN
#error "DOWN must divide SIDE"
#endif

__kernel __attribute__((reqd_work_group_size(SIDE, DOWN, 1)))
void transpose(__global const REAL *restrict in, __global REAL *restrict out, const int rows, const int columns)
{
    const int c = get_group_id(0) * SIDE + get_local_id(0);
    for (int y = get_local_id(1); y < SIDE; y += DOWN) {
        const int r = get_group_id(1) * SIDE + y;
        if (r < rows && c < columns)
            out[(size_t)c * rows + r] = in[(size_t)r * columns + c];
    }
}
