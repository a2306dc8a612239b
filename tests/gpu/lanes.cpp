// lanes.cpp - runs the kernel that stands before it: COLUMNS INNER WHOLE SLICES PANELS BLOCKS RESULTS, the last three files.
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
    const int columns = std::atoi(given[1]), inner = std::atoi(given[2]), whole = std::atoi(given[3]);
    const int slices = std::atoi(given[4]), stride = columns + 3;
    const auto panels = contents<uint4>(given[5]);
    const auto blocks = contents<int2>(given[6]);
    const int groups = whole + (static_cast<int>(blocks.size()) - whole) * slices;
    std::vector<double> C(static_cast<std::size_t>(columns) * stride, -777);
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
                gram(panels.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0);
            });
        for (std::thread &item : items)
            item.join();
    }
    std::ofstream out(given[7], std::ios::binary);
    out.write(reinterpret_cast<const char *>(C.data()), C.size() * sizeof(double));
    out.write(reinterpret_cast<const char *>(parts.data()), parts.size() * sizeof(double));
    return out.good() ? 0 : 1;
}
