// lanes.cpp - runs the kernel that stands before it, multiply if TWO_FACTORS is 1 and else gram:
// ROWS COLUMNS INNER WHOLE SLICES LEFT RIGHT LARGEST BLOCKS RESULTS, the last five files; gram has the left panels only.
// It writes the result, with a guard of -777 behind each row, and then the parts.
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
    for (int group = 0; group < groups; group++) {
        begin_group(group, ITEMS);
        run_group(ITEMS, [&] {
#if TWO_FACTORS
            const uint *of_columns = largest.data() + (rows + TILE - 1) / TILE * TILE;
            multiply(left.data(), right.data(), largest.data(), of_columns, C.data(), rows, columns, inner, stride,
                     blocks.data(), parts.data(), whole, slices, 0);
#else
            gram(left.data(), C.data(), columns, inner, stride, blocks.data(), parts.data(), whole, slices, 0);
#endif
        });
    }
    return written(given[10], {&C, &parts}) ? 0 : 1;
}
