/* fill.cl - write one number everywhere: out[i] = value for i < count.
 *
 * The floor of work whose answer is large: nothing is read and nothing computed, so no kernel that writes `count` numbers
 * is done sooner. Items of any launch of one dimension stride over the vector in pieces of WIDTH numbers, neighbours
 * beside each other; the last numbers, fewer than a piece, are written one by one.
 */
__kernel void fill(__global REAL *out, const REAL value, const ulong count)
{
    const ulong pieces = count / WIDTH;
    for (ulong i = get_global_id(0); i < pieces; i += get_global_size(0))
        ((__global VECTOR *)out)[i] = (VECTOR)(value);
    for (ulong i = pieces * WIDTH + get_global_id(0); i < count; i += get_global_size(0))
        out[i] = value;
}
