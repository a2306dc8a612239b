// lanes.hpp - what kernels/gram/split_mma.cl and kernels/multiply/split_mma.cl need to run as C++: a thread for each
// work-item, and the macros of kernels/split_mma_ptx.clh and kernels/halves.clh, whose place this file takes. mma.sync is done
// by the definition of m16n8k16's fragments, by all 32 items of a run together; a copy arrives only where the kernel waits.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

using uint = unsigned int;
using std::min;
struct alignas(16) uint4 { uint s0, s1, s2, s3; };
struct int2 { int x, y; };

struct Copy { char *to; const char *from; };
// the last group is the one that is still being filled
thread_local std::vector<std::vector<Copy>> copies(1);
thread_local char *local_memory;
thread_local int local_id, group_id;
std::unique_ptr<std::barrier<>> group_barrier;
std::vector<std::unique_ptr<std::barrier<>>> run_barriers;
uint shown[32][32][6];

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline void barrier(int) { group_barrier->arrive_and_wait(); }

inline void arrive(std::size_t newest)
{
    while (copies.size() > newest + 1) {
        for (const Copy &copy : copies.front())
            std::memcpy(copy.to, copy.from, 16);
        copies.erase(copies.begin());
    }
}

inline double half_of(uint word, int high)
{
    const uint bits = high ? word >> 16 : word & 0xffff;
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

// that of a float of these bits
inline int exponent_of(uint bits)
{
    float number;
    int exponent;
    std::memcpy(&number, &bits, sizeof number);
    std::frexp(number, &exponent);
    return exponent;
}

inline void mma(float *c, bool anew, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1)
{
    const int run = local_id / 32, lane = local_id % 32;
    const uint mine[6] = {a0, a1, a2, a3, b0, b1};
    std::memcpy(shown[run][lane], mine, sizeof mine);
    run_barriers[run]->arrive_and_wait();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        double sum = anew ? 0 : c[e];
        for (int k = 0; k < 16; k++)
            sum += half_of(shown[run][row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], k % 2) *
                   half_of(shown[run][column * 4 + k % 8 / 2][4 + k / 8], k % 2);
        c[e] = static_cast<float>(sum);
    }
    run_barriers[run]->arrive_and_wait();
}

#define __kernel
#define __attribute__(what)
#define __global
#define __local
#define restrict
#define CLK_LOCAL_MEM_FENCE 1
#define MMA_FACTORS(a, b, i, x, j, y) \
    (a)[i][0][2 * x], (a)[i][0][2 * x + 1], (a)[i][1][2 * x], (a)[i][1][2 * x + 1], (b)[j][0][y], (b)[j][1][y]
#define MMA_ADD(c, a, b, i, x, j, y) mma(c, false, MMA_FACTORS(a, b, i, x, j, y))
#define MMA_NEW(c, a, b, i, x, j, y) mma(c, true, MMA_FACTORS(a, b, i, x, j, y))
#define LOCAL_ADDRESS(to, pointer) (to) = 0, local_memory = reinterpret_cast<char *>(pointer)
#define COPY_UNIT(base, unit, from) \
    copies.back().push_back({local_memory + (base) + 16 * (unit), reinterpret_cast<const char *>(from)})
#ifndef SCALED
#define SCALED 0
#endif
#if SCALED
#define SCALES(table) const uint *table,
#define SCALE_TABLE(table) table
#define SCALED_BACK(sum, row_largest, column_largest) std::ldexp(sum, exponent_of(row_largest) + exponent_of(column_largest) - 20)
#else
#define SCALES(table)
#define SCALE_TABLE(table) nullptr
#define SCALED_BACK(sum, row_largest, column_largest) std::ldexp(sum, -20)
#endif
#define COPIES_ISSUED copies.emplace_back()
#define COPIES_ARRIVED arrive(STAGES - 2)
