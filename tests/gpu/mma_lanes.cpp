// mma_lanes.cpp - runs the kernel of split_mma.cl that stands before it, multiply if TWO_FACTORS is 1 and else gram:
// ROWS COLUMNS INNER WHOLE SLICES GROUPS LEFT RIGHT LARGEST BLOCKS RESULTS, the last five files; gram has the left panels only.
// It writes the result, with a guard of -777 behind each row, and then the parts.
int main(int, char **given)
{
    const int rows = std::atoi(given[1]), columns = std::atoi(given[2]), inner = std::atoi(given[3]);
    const int whole = std::atoi(given[4]), slices = std::atoi(given[5]), stride = columns + GUARD;
    group_count = std::atoi(given[6]);
    const auto left = contents<uint4>(given[7]), right = contents<uint4>(given[8]);
    const auto largest = contents<uint>(given[9]);
    const auto blocks = contents<int2>(given[10]);
    const int tasks = whole + (static_cast<int>(blocks.size()) - whole) * slices;
    std::vector<double> C(static_cast<std::size_t>(rows) * stride, -777);
    std::vector<double> parts(static_cast<std::size_t>(tasks - whole) * ROWS * COLUMNS, -777);
    std::vector<float> kept(static_cast<std::size_t>(WIDE_INNER / KEPT_INNER) * group_count * ROWS * COLUMNS, NAN);
    for (int group = 0; group < group_count; group++) {
        begin_group(group, ITEMS);
        run_group(ITEMS, [&] {
#if TWO_FACTORS
            const uint *of_columns = largest.data() + (rows + 63) / 64 * 64;
            multiply(left.data(), right.data(), largest.data(), of_columns, C.data(), rows, columns, inner, stride,
                     blocks.data(), parts.data(), whole, slices, 0, tasks, kept.data());
#else
            gram(left.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0, tasks,
                 kept.data());
#endif
        });
    }
    return written(given[11], {&C, &parts}) ? 0 : 1;
}
