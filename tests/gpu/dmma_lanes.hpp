// dmma_lanes.hpp - what a kernel of kernels/multiply/dmma.cl needs to run as C++: a thread for each work-item, and the macros
// of kernels/dmma_ptx.clh, whose place this file takes. mma.sync is done by the definition of m16n8k4's fragments, by all 32
// items of a warp together; a copy arrives only when the item that asked for it waits for something.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using uint = unsigned int;
using std::max;
using std::min;
struct alignas(16) double2 { double s0, s1; };
struct int8 { int s0, s1, s2, s3, s4, s5, s6, s7; };

struct Copy { char *to; const char *from; int bytes; };
struct Turning { int count, missing; uint phase; };
thread_local std::vector<Copy> asked_for;
thread_local std::vector<std::pair<uint, std::vector<Copy>>> on_their_way;
thread_local int local_id, group_id;
std::unique_ptr<std::barrier<>> group_barrier;
std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;
std::mutex guard;
std::map<uint, Turning> turning;
double shown[8][32][3];
char local_memory;

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline void barrier(int) { group_barrier->arrive_and_wait(); }
inline int atomic_add(int *at, int value) { return std::atomic_ref<int>(*at).fetch_add(value); }
inline int atomic_xchg(int *at, int value) { return std::atomic_ref<int>(*at).exchange(value); }

inline void arrive(uint at)
{
    const std::lock_guard<std::mutex> hold(guard);
    Turning &found = turning.at(at);
    if (--found.missing == 0) {
        found.phase ^= 1;
        found.missing = found.count;
    }
}

inline void let_copies_come()
{
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
    if (on_their_way.empty())
        std::this_thread::yield();
    else
        let_copies_come();
    const std::lock_guard<std::mutex> hold(guard);
    return turning.at(at).phase != phase;
}

inline void mma(double &c0, double &c1, double &c2, double &c3, double a0, double a1, double b)
{
    const int warp = local_id / 32, lane = local_id % 32;
    const double mine[3] = {a0, a1, b};
    std::memcpy(shown[warp][lane], mine, sizeof mine);
    warp_barriers[warp]->arrive_and_wait();
    double *const sums[4] = {&c0, &c1, &c2, &c3};
    for (int e = 0; e < 4; e++)
        for (int k = 0; k < 4; k++)
            *sums[e] += shown[warp][lane / 4 * 4 + k][e / 2] * shown[warp][(lane % 4 * 2 + e % 2) * 4 + k][2];
    warp_barriers[warp]->arrive_and_wait();
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
    asked_for.push_back({&local_memory + static_cast<int>(to), reinterpret_cast<const char *>(from), bytes})
#define BEGIN_BARRIER(at, count) turning[at] = {static_cast<int>(count), static_cast<int>(count), 0}
#define ARRIVE(at) arrive(at)
#define ARRIVE_WITH_COPIES(at) on_their_way.emplace_back(at, std::exchange(asked_for, {}))
#define HAS_TURNED(done, at, phase) (done) = has_turned(at, phase)
#define WARP_MEETS warp_barriers[local_id / 32]->arrive_and_wait()
#define FENCE std::atomic_thread_fence(std::memory_order_seq_cst)
