// lanes.hpp - what kernels/gram/split_mma.cl and kernels/multiply/split_mma.cl need to run as C++: the macros of
// kernels/split_mma_ptx.clh and kernels/halves.clh, whose place this file takes. mma.sync is done by the definition of
// m16n8k16's fragments and ldmatrix by its own, for all 32 items of a run together; a copy arrives only where the kernel
// waits, and what it will overwrite is NaN from the moment when it is begun.
#include "fibers.hpp"
#include "files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

using uint = unsigned int;
using ulong = unsigned long;
using std::min;
struct alignas(16) uint4 { uint s0, s1, s2, s3; };
struct int2 { int x, y; };
struct double2 { double s0, s1; };

struct Copy { char *to; const char *from; };
// of each item; the last group is the one that is still being filled
std::vector<std::vector<Copy>> copies_of[1024];
char *local_memory;
int group_id, group_count = 1;
std::vector<Meeting> group_meets, runs_meet;

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline int get_num_groups(int) { return group_count; }
inline void barrier(int) { group_meets[0].arrive_and_wait(); }

inline void begin_group(int group, int items)
{
    group_id = group;
    group_meets.assign(1, Meeting(items));
    runs_meet.assign(items / 32, Meeting(32));
    for (int item = 0; item < items; item++)
        copies_of[item].assign(1, {});
}

inline void arrive(std::size_t newest)
{
    auto &copies = copies_of[local_id];
    while (copies.size() > newest + 1) {
        for (const Copy &copy : copies.front())
            std::memcpy(copy.to, copy.from, 16);
        copies.erase(copies.begin());
    }
}

inline void begin_copy(char *to, const void *from)
{
    std::memset(to, 0xff, 16);
    copies_of[local_id].back().push_back({to, static_cast<const char *>(from)});
}

inline double half_of(uint word, int high)
{
    const uint bits = high ? word >> 16 : word & 0xffff;
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31)
        return NAN;
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

// what an item gives to an instruction of its run
struct Shown { void *sums; bool anew; uint words[6]; } shown[32][32];

inline void mma_of(const Shown *lanes)
{
    double a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++)
        for (int word = 0; word < 6; word++)
            for (int high = 0; high < 2; high++) {
                const double element = half_of(lanes[lane].words[word], high);
                const int k = lane % 4 * 2 + high;
                if (word < 4)
                    a[lane / 4 + word % 2 * 8][k + word / 2 * 8] = element;
                else
                    b[k + word % 2 * 8][lane / 4] = element;
            }
    for (int lane = 0; lane < 32; lane++)
        for (int e = 0; e < 4; e++) {
            float &c = static_cast<float *>(lanes[lane].sums)[e];
            double sum = lanes[lane].anew ? 0 : c;
            for (int k = 0; k < 16; k++)
                sum += a[lane / 4 + e / 2 * 8][k] * b[k][lane % 4 * 2 + e % 2];
            c = static_cast<float>(sum);
        }
}

inline void mma(float *c, bool anew, uint a0, uint a1, uint a2, uint a3, uint b0, uint b1)
{
    const int run = local_id / 32;
    shown[run][local_id % 32] = {c, anew, {a0, a1, a2, a3, b0, b1}};
    runs_meet[run].arrive_and_wait([&] { mma_of(shown[run]); });
}

// what an item asks for, and where it wants it
struct Asked { uint address, *to; } asked[32][32];

// ldmatrix: of each of four squares 8 items name the rows, and every item gets two halves of one
inline void read_tile(uint *to, uint address)
{
    const int run = local_id / 32;
    if (address % 16)
        std::abort();
    asked[run][local_id % 32] = {address, to};
    runs_meet[run].arrive_and_wait([&] {
        for (int lane = 0; lane < 32; lane++)
            for (int square = 0; square < 4; square++)
                std::memcpy(asked[run][lane].to + square,
                            local_memory + asked[run][8 * square + lane / 4].address + 4 * (lane % 4), 4);
    });
}

#define __kernel
#define __attribute__(what)
#define __global
#define __local
#define restrict
#define CLK_LOCAL_MEM_FENCE 1
#define MMA_FACTORS(a, b) (a)[0], (a)[1], (a)[2], (a)[3], (b)[0], (b)[1]
#define MMA_ADD(c, a, b) mma(c, false, MMA_FACTORS(a, b))
#define MMA_NEW(c, a, b) mma(c, true, MMA_FACTORS(a, b))
#define READ_TILE(to, address) read_tile(to, address)
#define NOT_BEFORE(x)
#define LOCAL_ADDRESS(to, pointer) (to) = 0, local_memory = reinterpret_cast<char *>(pointer)
#define COPY_UNIT(base, unit, from) begin_copy(local_memory + (base) + 16 * (unit), from)
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
#define COPIES_ISSUED copies_of[local_id].emplace_back()
#define COPIES_ARRIVED arrive(STAGES - 2)
