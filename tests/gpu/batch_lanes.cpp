// batch_lanes.cpp - runs the sums of kernels/batch/tile_dmma.clh, which stand between its two parts, as C++: a thread for each
// work-item, and the tensor cores' instructions by the definition of their fragments, by all 32 items of a run together.
// Arguments: ROWS COLUMNS INNER TRIANGLE ITEMS LEFT RIGHT RESULT, the last three files: panels, and a matrix that holds -777
// where no item has a sum.
#if FIRST_PART
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#define __local
#define __global
#define barrier(fence)
struct alignas(16) double2 { double s0, s1; };

thread_local int local_id;
std::vector<std::unique_ptr<std::barrier<>>> run_barriers;
double shown[32][32][3];

inline int get_local_id(int) { return local_id; }

// rows 8 * `halves`: the sums of a lane, the elements of its left fragment, and that of its right one
template <int halves> void mma(double *const *sums, const double *left, double right)
{
    const int run = local_id / 32, lane = local_id % 32;
    double *const mine = shown[run][lane];
    for (int h = 0; h < halves; h++)
        mine[h] = left[h];
    mine[2] = right;
    run_barriers[run]->arrive_and_wait();
    for (int e = 0; e < 2 * halves; e++) {
        const int row = lane / 4, half = e / 2, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 4; k++)
            *sums[e] += shown[run][row * 4 + k][half] * shown[run][column * 4 + k][2];
    }
    run_barriers[run]->arrive_and_wait();
}

inline void m16n8k4(double &c0, double &c1, double &c2, double &c3, double a0, double a1, double b)
{
    double *const sums[] = {&c0, &c1, &c2, &c3};
    const double left[] = {a0, a1};
    mma<2>(sums, left, b);
}

inline void m8n8k4(double &c0, double &c1, double a, double b)
{
    double *const sums[] = {&c0, &c1};
    mma<1>(sums, &a, b);
}
#else
std::vector<double> contents(const char *path)
{
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<double> out(bytes.size() / sizeof(double));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

int main(int, char **given)
{
    const int rows = std::atoi(given[1]), columns = std::atoi(given[2]), inner = std::atoi(given[3]);
    const int triangle = std::atoi(given[4]), all = std::atoi(given[5]);
    const auto left = contents(given[6]), right = contents(given[7]);
    // pairs are read as one
    const auto aligned = [](const std::vector<double> &from) {
        double *to = static_cast<double *>(std::aligned_alloc(64, (from.size() * 8 + 63) / 64 * 64));
        std::memcpy(to, from.data(), from.size() * 8);
        return to;
    };
    double *const lefts = aligned(left), *const rights = aligned(right);
    std::vector<double> C(static_cast<std::size_t>(rows) * columns, -777);
    for (int run = 0; run < all / 32; run++)
        run_barriers.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> items;
    for (int item = 0; item < all; item++)
        items.emplace_back([&, item] {
            local_id = item;
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
    for (std::thread &item : items)
        item.join();
    std::ofstream out(given[8], std::ios::binary);
    out.write(reinterpret_cast<const char *>(C.data()), C.size() * sizeof(double));
    return out.good() ? 0 : 1;
}
#endif
