// lanes.cpp - runs the kernel that stands before it, multiply if TWO_FACTORS is 1 and else gram:
// ROWS COLUMNS INNER WHOLE SLICES LEFT RIGHT LARGEST BLOCKS RESULTS, the last five files; gram has the left panels only.
// It writes the result, with a guard of -777 behind each row, and then the parts.
template <class T> std::vector<T> contents(const char *path)
{
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<T> out(bytes.size() / sizeof(T));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

int main(int, char **given)
{
    const int rows = std::atoi(given[1]), columns = std::atoi(given[2]), inner = std::atoi(given[3]);
    const int whole = std::atoi(given[4]), slices = std::atoi(given[5]), stride = columns + 3;
    const auto left = contents<uint4>(given[6]), right = contents<uint4>(given[7]);
    const auto largest = contents<uint>(given[8]);
    const auto blocks = contents<int2>(given[9]);
    const int groups = whole + (static_cast<int>(blocks.size()) - whole) * slices;
    std::vector<double> C(static_cast<std::size_t>(rows) * stride, -777);
    std::vector<double> parts(static_cast<std::size_t>(groups - whole) * TILE * TILE, -777);
    group_barrier = std::make_unique<std::barrier<>>(ITEMS);
    for (int run = 0; run < ITEMS / 32; run++)
        run_barriers.push_back(std::make_unique<std::barrier<>>(32));
    for (int group = 0; group < groups; group++) {
        std::vector<std::thread> items;
        for (int item = 0; item < ITEMS; item++)
            items.emplace_back([&, item] {
                local_id = item;
                group_id = group;
#if TWO_FACTORS
                const uint *of_columns = largest.data() + (rows + TILE - 1) / TILE * TILE;
                multiply(left.data(), right.data(), largest.data(), of_columns, C.data(), rows, columns, inner, stride,
                         blocks.data(), parts.data(), whole, slices, 0);
#else
                gram(left.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0);
#endif
            });
        for (std::thread &item : items)
            item.join();
    }
    std::ofstream out(given[10], std::ios::binary);
    out.write(reinterpret_cast<const char *>(C.data()), C.size() * sizeof(double));
    out.write(reinterpret_cast<const char *>(parts.data()), parts.size() * sizeof(double));
    return out.good() ? 0 : 1;
}
