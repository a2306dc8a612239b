// wgmma_masks.cpp - runs multiply/split_wgmma.cl, which stands before it: ROWS COLUMNS INNER WHOLE SLICES GROUPS LEFT RIGHT
// BLOCKS RESULTS, the last four files. It writes the result, with a guard of -777 behind each row, and then the parts.
int main(int, char **given)
{
    const int rows = std::atoi(given[1]), columns = std::atoi(given[2]), inner = std::atoi(given[3]);
    const int whole = std::atoi(given[4]), slices = std::atoi(given[5]), stride = columns + GUARD;
    group_count = std::atoi(given[6]);
    const auto left = contents<uint4>(given[7]), right = contents<uint4>(given[8]);
    const auto blocks = contents<int2>(given[9]);
    const int tasks = whole + (static_cast<int>(blocks.size()) - whole) * slices;
    std::vector<double> C(static_cast<std::size_t>(rows) * stride, -777);
    std::vector<double> parts(static_cast<std::size_t>(tasks - whole) * ROWS * COLUMNS, -777);
    std::vector<float> kept(static_cast<std::size_t>(WIDE_INNER / KEPT_INNER) * group_count * ROWS * COLUMNS, NAN);
    step_beside = do_a_copy;
    for (group_id = 0; group_id < group_count; group_id++) {
        group_meets.assign(1, Meeting(ITEMS));
        runs_meet.assign(ITEMS / 32, Meeting(32));
        workers_meet.assign(WORKERS, Meeting(128));
        turns.assign(WORKERS, Meeting(WORKERS > 1 ? 256 : 128));
        run_group(ITEMS, [&] {
            multiply(left.data(), right.data(), C.data(), rows, columns, inner, stride, blocks.data(), parts.data(), whole,
                     slices, 0, tasks, kept.data());
        });
    }
    return written(given[10], {&C, &parts}) ? 0 : 1;
}
