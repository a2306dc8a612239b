// wgmma_lanes.cpp - runs the kernel that stands before it: COLUMNS INNER WHOLE SLICES GROUPS PANELS BLOCKS RESULTS, the last
// three files. It writes the result, with a guard of -777 behind each row, and then the parts.
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
    step_beside = do_a_copy;
    for (group_id = 0; group_id < group_count; group_id++) {
        group_meets.assign(1, Meeting(ITEMS));
        runs_meet.assign(ITEMS / 32, Meeting(32));
        workers_meet.assign(WORKERS, Meeting(128));
        turns.assign(WORKERS, Meeting(WORKERS > 1 ? 256 : 128));
        run_group(ITEMS, [&] {
            gram(panels.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0, tasks,
                 kept.data());
        });
    }
    return written(given[8], {&C, &parts}) ? 0 : 1;
}
