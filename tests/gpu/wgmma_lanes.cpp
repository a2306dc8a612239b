// wgmma_lanes.cpp - runs the kernel that stands before it: COLUMNS INNER WHOLE SLICES GROUPS PANELS BLOCKS RESULTS, the last
// three files. It writes the result, with a guard of -777 behind each row, and then the parts.
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
    const int slices = std::atoi(given[4]), stride = columns + GUARD;
    group_count = std::atoi(given[5]);
    const auto panels = contents<uint4>(given[6]);
    const auto blocks = contents<int2>(given[7]);
    const int tasks = whole + (static_cast<int>(blocks.size()) - whole) * slices;
    std::vector<double> C(static_cast<std::size_t>(columns) * stride, -777);
    std::vector<double> parts(static_cast<std::size_t>(tasks - whole) * ROWS * COLUMNS, -777);
    std::vector<float> kept(static_cast<std::size_t>(WIDE_INNER / KEPT_INNER) * group_count * ROWS * COLUMNS, NAN);
    group_barrier = std::make_unique<std::barrier<>>(ITEMS);
    for (int run = 0; run < ITEMS / 32; run++)
        run_barriers.push_back(std::make_unique<std::barrier<>>(32));
    for (int worker = 0; worker < WORKERS; worker++)
        worker_barriers.push_back(std::make_unique<std::barrier<>>(128));
    for (int worker = 0; worker < WORKERS; worker++)
        turns.push_back(std::make_unique<std::barrier<>>(WORKERS > 1 ? 256 : 128));
    for (int group = 0; group < group_count; group++) {
        finished = false;
        std::thread copier(do_copies);
        std::vector<std::thread> items;
        for (int item = 0; item < ITEMS; item++)
            items.emplace_back([&, item] {
                local_id = item;
                group_id = group;
                gram(panels.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0, tasks,
                     kept.data());
            });
        for (std::thread &item : items)
            item.join();
        {
            const std::lock_guard<std::mutex> lock(mutex);
            finished = true;
            changed.notify_all();
        }
        copier.join();
    }
    std::ofstream out(given[8], std::ios::binary);
    out.write(reinterpret_cast<const char *>(C.data()), C.size() * sizeof(double));
    out.write(reinterpret_cast<const char *>(parts.data()), parts.size() * sizeof(double));
    return out.good() ? 0 : 1;
}
