/* table.cl - read a small table often: out[i] = the sum of READS entries of `table`, for items i < count.
 *
 *   state(0) = 2654435761 * (seed + 1), state(k + 1) = 1664525 * state(k) + 1013904223, modulo 2^32
 *   entry(k) = the upper TABLE_BITS bits of state(k), for k = 1 .. READS
 *
 * where seed is the item's number if DIVERGENT, else its group's: then all items of a group read one entry at a time,
 * by the same arithmetic. PLACE says where the table lies:
 *
 *   0 __global   1 __constant, an argument   2 __local, copied by each group, which is counted
 *   3 __constant, in the program itself: entry k is 389 * k modulo 1999, less 999, as in the buffer of the others
 *
 * The memory article's step "constant memory". The constant cache of a GPU serves one address at a time, so it should
 * win for uniform reads and lose for divergent ones; a driver may read an argument as if it were __global all the same.
 * On CPUs all four are the same cache.
 * Whole numbers as entries make every sum exact, in any order.
 */
#ifndef PLACE
#define PLACE 0
#endif
#ifndef DIVERGENT
#define DIVERGENT 0
#endif
#ifndef READS
#define READS 256      /* entries that an item adds up */
#endif
#ifndef TABLE_BITS
#define TABLE_BITS 10  /* the table has 2^TABLE_BITS entries */
#endif
#ifndef GROUP
#define GROUP 64       /* items of a group */
#endif

#if PLACE == 1
#define TABLE __constant
#else
#define TABLE __global const
#endif

#if PLACE == 3
#if TABLE_BITS != 10
#error "the table of a program has 2^10 entries"
#endif
#define ENTRY(k) (REAL)((k) * 389 % 1999 - 999)
#define ENTRIES4(k) ENTRY(k), ENTRY(k + 1), ENTRY(k + 2), ENTRY(k + 3)
#define ENTRIES16(k) ENTRIES4(k), ENTRIES4(k + 4), ENTRIES4(k + 8), ENTRIES4(k + 12)
#define ENTRIES64(k) ENTRIES16(k), ENTRIES16(k + 16), ENTRIES16(k + 32), ENTRIES16(k + 48)
#define ENTRIES256(k) ENTRIES64(k), ENTRIES64(k + 64), ENTRIES64(k + 128), ENTRIES64(k + 192)
__constant REAL held[1024] = {ENTRIES256(0), ENTRIES256(256), ENTRIES256(512), ENTRIES256(768)};
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void look_up(TABLE REAL *table, __global REAL *out, const int count)
{
#if PLACE == 2
    __local REAL held[1 << TABLE_BITS];
    for (int entry = get_local_id(0); entry < 1 << TABLE_BITS; entry += GROUP)
        held[entry] = table[entry];
    barrier(CLK_LOCAL_MEM_FENCE);
#elif PLACE != 3
#define held table
#endif
    const int item = get_global_id(0);
    if (item >= count)
        return;
    uint state = 2654435761u * ((DIVERGENT ? (uint)item : (uint)get_group_id(0)) + 1u);
    REAL sum = (REAL)0;
    for (int k = 0; k < READS; k++) {
        state = 1664525u * state + 1013904223u;
        sum += held[state >> (32 - TABLE_BITS)];
    }
    out[item] = sum;
}
