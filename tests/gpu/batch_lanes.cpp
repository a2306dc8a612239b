// batch_lanes.cpp - runs the sums of kernels/batch/tile_dmma.clh, which stand between its two parts, as C++, with the tensor
// cores' instructions by the definition of their fragments, for all 32 items of a run together.
// Arguments: ROWS COLUMNS INNER TRIANGLE ITEMS LEFT RIGHT RESULT, the last three files: panels, and a matrix that holds -777
// where no item has a sum.
#if FIRST_PART
#include "fibers.hpp"
#include "files.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

#define __local
#define __global
#define barrier(fence)
struct alignas(16) double2 { double s0, s1; };

std::vector<Meeting> runs_meet;
// what an item gives to an instruction of its run
struct Shown { double *sums[4], left[2], right; } shown[32][32];

inline int get_local_id(int) { return local_id; }

// rows 8 * `halves`: the sums of a lane, the elements of its left fragment, and that of its right one
template <int halves> void mma(const Shown &mine)
{
    Shown *const lanes = shown[local_id / 32];
    lanes[local_id % 32] = mine;
    runs_meet[local_id / 32].arrive_and_wait([=] {
        for (int lane = 0; lane < 32; lane++)
            for (int e = 0; e < 2 * halves; e++)
                for (int k = 0; k < 4; k++)
                    *lanes[lane].sums[e] +=
                        lanes[lane / 4 * 4 + k].left[e / 2] * lanes[(lane % 4 * 2 + e % 2) * 4 + k].right;
    });
}

inline void m16n8k4(double &c0, double &c1, double &c2, double &c3, double a0, double a1, double b)
{
    mma<2>({{&c0, &c1, &c2, &c3}, {a0, a1}, b});
}

inline void m8n8k4(double &c0, double &c1, double a, double b)
{
    mma<1>({{&c0, &c1}, {a}, b});
}
#else
int main(int, char **given)
{
    const int rows = std::atoi(given[1]), columns = std::atoi(given[2]), inner = std::atoi(given[3]);
    const int triangle = std::atoi(given[4]), all = std::atoi(given[5]);
    const auto left = contents<double>(given[6]), right = contents<double>(given[7]);
    // pairs are read as one
    const auto aligned = [](const std::vector<double> &from) {
        double *to = static_cast<double *>(std::aligned_alloc(64, (from.size() * 8 + 63) / 64 * 64));
        std::memcpy(to, from.data(), from.size() * 8);
        return to;
    };
    double *const lefts = aligned(left), *const rights = aligned(right);
    std::vector<double> C(static_cast<std::size_t>(rows) * columns, -777);
    runs_meet.assign(all / 32, Meeting(32));
    run_group(all, [&] {
        struct Place place;
        const int busy = triangle ? place_in_triangle(columns, &place) : place_in_grid(rows, columns, &place);
        if (!busy)
            return;
        double sum[LINES][EACH] = {};
        add_products(lefts + place.left, rights + place.right, WIDTH_OF(rows), WIDTH_OF(columns), inner, place.tiles,
                     sum);
        for (int n = 0; n < LINES * EACH; n++) {
            const int r = place.row + n / EACH, c = place.column + COLUMN_AT(n % EACH);
            if (r < rows && c < columns && (!triangle || c >= r))
                C[r * columns + c] = sum[n / EACH][n % EACH];
        }
    });
    return written(given[8], {&C}) ? 0 : 1;
}
#endif
