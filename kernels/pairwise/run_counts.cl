/* run_counts.cl - how many of the first rows every column has.
 *
 *   counts[r * across + j] = the rows below edges[r] that column j has
 *
 * of what presence.cl says; edges increase. One item does a column and RUNS edges after each other; groups are
 * (across / LANES, runs / RUNS / DOWN), rounded up.
 */
#ifndef LANES
#define LANES 32
#endif
#ifndef DOWN
#define DOWN 2
#endif
#ifndef RUNS
#define RUNS 16
#endif

__kernel __attribute__((reqd_work_group_size(LANES, DOWN, 1)))
void run_counts(__global const uint *restrict bits, __global const int *restrict edges, __global int *restrict counts,
                const int columns, const int runs)
{
    const int j = get_global_id(0), across = get_global_size(0), first = get_global_id(1) * RUNS;
    int count = 0, word = 0;
    for (int r = first; r < min(first + RUNS, runs); r++) {
        const int edge = edges[r], left = edge % 32;
        for (; word < edge / 32; word++)
            count += j < columns ? popcount(bits[(size_t)word * columns + j]) : 0;
        const uint some = left && j < columns ? bits[(size_t)word * columns + j] & ((1u << left) - 1) : 0;
        counts[(size_t)r * across + j] = count + popcount(some);
    }
}
