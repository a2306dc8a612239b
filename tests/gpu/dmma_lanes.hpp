// dmma_lanes.hpp - what a kernel of kernels/multiply/dmma.cl needs to run as C++: the macros of kernels/dmma_multiply.clh and
// dmma_ptx.clh, whose place this file takes. mma.sync is done by the definition of m16n8k4's fragments, for all 32 items of a
// warp together; a copy arrives only when the item that asked for it waits for something.
#include "fibers.hpp"
#include "files.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

using uint = unsigned int;
using std::max;
using std::min;
struct alignas(16) double2 { double s0, s1; };
struct int8 { int s0, s1, s2, s3, s4, s5, s6, s7; };

struct Copy { char *to; const char *from; int bytes; };
struct Turning { int count, missing; uint phase; std::vector<Fiber *> waiting; };
// of each item
struct Copies {
    std::vector<Copy> asked_for;
    std::vector<std::pair<uint, std::vector<Copy>>> on_their_way;
} copies_of[256];
int group_id;
std::vector<Meeting> group_meets, warps_meet;
std::map<uint, Turning> turning;
char local_memory;

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline void barrier(int) { group_meets[0].arrive_and_wait(); }
// groups run one after the other
inline int atomic_add(int *at, int value) { return std::exchange(*at, *at + value); }
inline int atomic_xchg(int *at, int value) { return std::exchange(*at, value); }

inline void arrive(uint at)
{
    Turning &found = turning.at(at);
    if (--found.missing == 0) {
        found.phase ^= 1;
        found.missing = found.count;
        wake(found.waiting);
    }
}

inline void let_copies_come()
{
    auto &on_their_way = copies_of[local_id].on_their_way;
    const auto [at, copies] = on_their_way.front();
    on_their_way.erase(on_their_way.begin());
    for (const Copy &copy : copies) {
        std::memset(copy.to, 0, 16);
        std::memcpy(copy.to, copy.from, copy.bytes);
    }
    arrive(at);
}

inline uint has_turned(uint at, uint phase)
{
    if (copies_of[local_id].on_their_way.size())
        let_copies_come();
    else if (turning.at(at).phase == phase)
        wait_in(turning.at(at).waiting);
    return turning.at(at).phase != phase;
}

// what an item gives to an instruction of its warp
struct Shown { double *sums[4], a[2], b; } shown[8][32];

inline void mma(double &c0, double &c1, double &c2, double &c3, double a0, double a1, double b)
{
    Shown *const lanes = shown[local_id / 32];
    lanes[local_id % 32] = {{&c0, &c1, &c2, &c3}, {a0, a1}, b};
    warps_meet[local_id / 32].arrive_and_wait([=] {
        for (int lane = 0; lane < 32; lane++)
            for (int e = 0; e < 4; e++)
                for (int k = 0; k < 4; k++)
                    *lanes[lane].sums[e] += lanes[lane / 4 * 4 + k].a[e / 2] * lanes[(lane % 4 * 2 + e % 2) * 4 + k].b;
    });
}

#define __kernel
#define __attribute__(what)
#define __global
#define __local
#define restrict
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define MULTIPLY(i, j, a, b) \
    mma(sum[i][j], sum[i][(j) + 2], sum[(i) + 1][j], sum[(i) + 1][(j) + 2], (a).s0, (a).s1, b)
#define ADDRESS(to, pointer) (to) = static_cast<uint>(reinterpret_cast<const char *>(pointer) - &local_memory)
#define COPY(to, from, bytes) \
    copies_of[local_id].asked_for.push_back( \
        {&local_memory + static_cast<int>(to), reinterpret_cast<const char *>(from), bytes})
#define BEGIN_BARRIER(at, count) turning[at] = {static_cast<int>(count), static_cast<int>(count), 0, {}}
#define ARRIVE(at) arrive(at)
#define ARRIVE_WITH_COPIES(at) \
    copies_of[local_id].on_their_way.emplace_back(at, std::exchange(copies_of[local_id].asked_for, {}))
#define HAS_TURNED(done, at, phase) (done) = has_turned(at, phase)
#define WARP_MEETS warps_meet[local_id / 32].arrive_and_wait()
#define FENCE
