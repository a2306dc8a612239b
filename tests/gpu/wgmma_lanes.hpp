// wgmma_lanes.hpp - what a kernel of kernels/gram/split_wgmma.cl needs to run as C++: the macros of
// kernels/split_wgmma_ptx.clh, whose place this file takes. wgmma reads local memory by the definition of its descriptors
// and swizzles, and writes when it is waited for, for all 128 items of a worker together. Copies are done beside the items,
// in any order; what they will overwrite is NaN from the moment when they are begun.
#include "fibers.hpp"
#include "files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

using uint = unsigned int;
using ulong = std::uint64_t;
using std::min;
struct alignas(16) uint4 { uint s0, s1, s2, s3; };
struct int2 { int x, y; };
struct double2 { double s0, s1; };

int group_id, group_count;
std::vector<Meeting> group_meets, runs_meet, workers_meet, turns;

inline int get_local_id(int) { return local_id; }
inline int get_group_id(int) { return group_id; }
inline int get_num_groups(int) { return group_count; }
inline void barrier(int) { group_meets[0].arrive_and_wait(); }

// Local memory: tiles from address 0 on, barriers from BARRIERS on.
constexpr uint BARRIERS = 1 << 20;
char *local_memory;
inline uint address_of(uint4 *stages) { local_memory = reinterpret_cast<char *>(stages); return 0; }
inline uint address_of(ulong *) { return BARRIERS; }

struct Arrivals { int count, missing; long bytes; uint phase; std::vector<Fiber *> waiting; };
std::vector<Arrivals> arrivals_at(64);
inline Arrivals &arrivals_of(uint address) { return arrivals_at.at((address - BARRIERS) / 8); }

inline void settle(Arrivals &a)
{
    if (a.missing == 0 && a.bytes == 0) {
        a.missing = a.count;
        a.phase ^= 1;
        wake(a.waiting);
    }
}

inline void arrive(uint address, long bytes)
{
    Arrivals &a = arrivals_of(address);
    if (--a.missing < 0)
        std::abort();
    a.bytes += bytes;
    settle(a);
}

inline void wait_for_phase(uint address, uint phase)
{
    // the phase of parity `phase` has ended when one of the other parity goes on
    for (Arrivals &a = arrivals_of(address); a.phase == phase;)
        wait_in(a.waiting);
}

struct Copy { uint to, bytes, barrier; const char *from; };
std::vector<Copy> copies;

inline void begin_copy(uint to, const void *from, uint bytes, uint barrier_address)
{
    if (to % 16 || bytes % 16 || reinterpret_cast<std::uintptr_t>(from) % 16)
        std::abort();
    std::memset(local_memory + to, 0xff, bytes);
    copies.push_back({to, bytes, barrier_address, static_cast<const char *>(from)});
}

// Whether there was one to do.
inline bool do_a_copy()
{
    if (copies.empty())
        return false;
    std::swap(copies[by_lot(copies.size())], copies.back());
    const Copy copy = copies.back();
    copies.pop_back();
    std::memcpy(local_memory + copy.to, copy.from, copy.bytes);
    Arrivals &a = arrivals_of(copy.barrier);
    a.bytes -= copy.bytes;
    settle(a);
    return true;
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
// of each item: what it began, and where the sums go
struct Begun { std::vector<Product> products; float *sums; } begun[1024];

inline void wgmma(float *sums, ulong a, ulong b, bool more)
{
    begun[local_id].products.push_back({a, b, more});
    if (!more)
        std::fill(sums, sums + SUMS, NAN);
}

// D: rows 16 * warp + lane / 4 and 8 further, columns 8 * i + 2 * (lane % 4) and the next
inline void wgmma_of(const Begun *items, std::size_t which)
{
    const Product p = items[0].products[which];
    std::vector<double> a(64 * 16), b(16 * 2 * SUMS), sums(2 * SUMS);
    for (int k = 0; k < 16; k++) {
        for (int row = 0; row < 64; row++)
            a[row * 16 + k] = element_of(p.a, row, k);
        for (int column = 0; column < 2 * SUMS; column++)
            b[k * 2 * SUMS + column] = element_of(p.b, column, k);
    }
    for (int row = 0; row < 64; row++) {
        const auto sum_at = [&](int column) -> float & {
            const int item = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
            return items[item].sums[column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
        };
        for (int column = 0; column < 2 * SUMS; column++)
            sums[column] = p.more ? sum_at(column) : 0;
        for (int k = 0; k < 16; k++)
            for (int column = 0; column < 2 * SUMS; column++)
                sums[column] += a[row * 16 + k] * b[k * 2 * SUMS + column];
        for (int column = 0; column < 2 * SUMS; column++)
            sum_at(column) = static_cast<float>(sums[column]);
    }
}

inline void wgmma_end(float *sums)
{
    begun[local_id].sums = sums;
    Begun *const items = begun + local_id / 128 * 128;
    workers_meet[local_id / 128].arrive_and_wait([=] {
        for (std::size_t which = 0; which < items[0].products.size(); which++)
            wgmma_of(items, which);
        for (int item = 0; item < 128; item++)
            items[item].products.clear();
    });
}

#define __kernel
#define __attribute__(what)
#define __global
#define __local
#define restrict
#define CLK_LOCAL_MEM_FENCE 1
#define LOCAL_ADDRESS(to, pointer) (to) = address_of(pointer)
#define BARRIER_INIT(address, arrivals) arrivals_of(address) = {int(arrivals), int(arrivals), 0, 0, {}}
#define BARRIERS_READY
#define ARRIVE(address) arrive(address, 0)
#define EXPECT(address, bytes) arrive(address, bytes)
#define HAS_ENDED(done, address, phase) wait_for_phase(address, phase), (done) = 1
#define COPY(to, from, bytes, address) begin_copy(to, from, bytes, address)
#define MEET runs_meet[local_id / 32].arrive_and_wait()
#define NOT_BEFORE(x)
#define WGMMA_BEGIN
#define WGMMA_NEW(sums, a, b) wgmma(sums, a, b, false)
#define WGMMA_ADD(sums, a, b) wgmma(sums, a, b, true)
#define WGMMA_BEGUN
#define WGMMA_END(sums) wgmma_end(sums)
#define MY_TURN turns[WORKER].arrive_and_wait()
#define NEXT_TURN do { if (WORKERS > 1) turns[(WORKER + 1) % WORKERS].arrive(); } while (0)
#define GIVE_REGISTERS
#define TAKE_REGISTERS
// of kernels/halves.clh
#define SCALES(table)
#define SCALE_TABLE(table) nullptr
#define SCALED_BACK(sum, row_largest, column_largest) ((sum) / (1024. * 1024.))
