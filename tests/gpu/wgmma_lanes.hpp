// wgmma_lanes.hpp - what a kernel of kernels/gram/split_wgmma.cl needs to run as C++: a thread for each work-item, and the
// macros of kernels/split_wgmma_ptx.clh, whose place this file takes. wgmma reads local memory by the definition of its
// descriptors and swizzles, and writes when it is waited for, by all 128 items of a worker together. Copies are done by a
// thread of their own, in any order; what they will overwrite is NaN from the moment when they are begun.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using uint = unsigned int;
using ulong = std::uint64_t;
using std::min;
struct alignas(16) uint4 { uint s0, s1, s2, s3; };
struct int2 { int x, y; };
struct double2 { double s0, s1; };

thread_local int local_id, group_id;
int group_count;
std::unique_ptr<std::barrier<>> group_barrier;
std::vector<std::unique_ptr<std::barrier<>>> run_barriers, worker_barriers, turns;

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline int get_num_groups(int) { return group_count; }
inline void barrier(int) { group_barrier->arrive_and_wait(); }

// Local memory: tiles from address 0 on, barriers from BARRIERS on.
constexpr uint BARRIERS = 1 << 20;
char *local_memory;
inline uint address_of(uint4 *stages) { local_memory = reinterpret_cast<char *>(stages); return 0; }
inline uint address_of(ulong *) { return BARRIERS; }

struct Arrivals { int count, missing; long bytes; uint phase; };
std::mutex mutex;
std::condition_variable changed;
std::vector<Arrivals> arrivals_at(64);
inline Arrivals &arrivals_of(uint address) { return arrivals_at.at((address - BARRIERS) / 8); }

// with the mutex held
inline void settle(Arrivals &a)
{
    if (a.missing == 0 && a.bytes == 0) {
        a.missing = a.count;
        a.phase ^= 1;
        changed.notify_all();
    }
}

inline void arrive(uint address, long bytes)
{
    const std::lock_guard<std::mutex> lock(mutex);
    Arrivals &a = arrivals_of(address);
    if (--a.missing < 0)
        std::abort();
    a.bytes += bytes;
    settle(a);
}

inline void wait_for_phase(uint address, uint phase)
{
    std::unique_lock<std::mutex> lock(mutex);
    // the phase of parity `phase` has ended when one of the other parity goes on
    changed.wait(lock, [&] { return arrivals_of(address).phase != phase; });
}

struct Copy { uint to, bytes, barrier; const char *from; };
std::vector<Copy> copies;
bool finished;

inline void begin_copy(uint to, const void *from, uint bytes, uint barrier_address)
{
    if (to % 16 || bytes % 16 || reinterpret_cast<std::uintptr_t>(from) % 16)
        std::abort();
    std::memset(local_memory + to, 0xff, bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    copies.push_back({to, bytes, barrier_address, static_cast<const char *>(from)});
    changed.notify_all();
}

inline void do_copies()
{
    std::minstd_rand random(1);
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
        changed.wait(lock, [] { return finished || !copies.empty(); });
        if (copies.empty())
            return;
        std::swap(copies[random() % copies.size()], copies.back());
        const Copy copy = copies.back();
        copies.pop_back();
        std::memcpy(local_memory + copy.to, copy.from, copy.bytes);
        Arrivals &a = arrivals_of(copy.barrier);
        a.bytes -= copy.bytes;
        settle(a);
    }
}

inline double half_at(uint address)
{
    std::uint16_t bits;
    std::memcpy(&bits, local_memory + address, 2);
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31)
        return NAN;
    const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
    return bits >> 15 ? -size : size;
}

// Element (row, k) of a tile: rows of 128 bytes, 8 of them a group; bits 7 to 9 of an address change its bits 4 to 6.
inline double element_of(ulong tile, int row, int k)
{
    const uint start = (tile & 0x3fff) << 4, groups = (tile >> 32 & 0x3fff) << 4;
    if (tile >> 62 != 1 || (tile >> 49 & 7) != 0)
        std::abort();
    const uint address = start + row / 8 * groups + row % 8 * 128 + 2 * k;
    return half_at(address ^ (address >> 7 & 7) << 4);
}

struct Product { ulong a, b; bool more; };
thread_local std::vector<Product> products;

inline void wgmma(float *sums, ulong a, ulong b, bool more)
{
    products.push_back({a, b, more});
    if (!more)
        std::fill(sums, sums + SUMS, NAN);
}

// D: rows 16 * warp + lane / 4 and 8 further, columns 8 * i + 2 * (lane % 4) and the next
inline void wgmma_end(float *sums)
{
    std::barrier<> &worker = *worker_barriers[local_id / 128];
    worker.arrive_and_wait();
    for (const Product &p : products)
        for (int n = 0; n < SUMS; n++) {
            const int row = local_id % 128 / 32 * 16 + local_id % 32 / 4 + n / 2 % 2 * 8;
            const int column = n / 4 * 8 + local_id % 4 * 2 + n % 2;
            double sum = p.more ? sums[n] : 0;
            for (int k = 0; k < 16; k++)
                sum += element_of(p.a, row, k) * element_of(p.b, column, k);
            sums[n] = static_cast<float>(sum);
        }
    products.clear();
    worker.arrive_and_wait();
}

#define __kernel
#define __attribute__(what)
#define __global
#define __local
#define restrict
#define CLK_LOCAL_MEM_FENCE 1
#define LOCAL_ADDRESS(to, pointer) (to) = address_of(pointer)
#define BARRIER_INIT(address, arrivals) arrivals_of(address) = {int(arrivals), int(arrivals), 0, 0}
#define BARRIERS_READY
#define ARRIVE(address) arrive(address, 0)
#define EXPECT(address, bytes) arrive(address, bytes)
#define HAS_ENDED(done, address, phase) wait_for_phase(address, phase), (done) = 1
#define COPY(to, from, bytes, address) begin_copy(to, from, bytes, address)
#define MEET run_barriers[local_id / 32]->arrive_and_wait()
#define NOT_BEFORE(x)
#define WGMMA_BEGIN
#define WGMMA_NEW(sums, a, b) wgmma(sums, a, b, false)
#define WGMMA_ADD(sums, a, b) wgmma(sums, a, b, true)
#define WGMMA_BEGUN
#define WGMMA_END(sums) wgmma_end(sums)
#define MY_TURN turns[WORKER]->arrive_and_wait()
#define NEXT_TURN do { if (WORKERS > 1) (void)turns[(WORKER + 1) % WORKERS]->arrive(); } while (0)
#define GIVE_REGISTERS
#define TAKE_REGISTERS
// of kernels/halves.clh
#define SCALES(table)
#define SCALE_TABLE(table) nullptr
#define SCALED_BACK(sum, row_largest, column_largest) ((sum) / (1024. * 1024.))
