// dmma_lanes.cpp - runs the kernel that stands before it: LEFT RIGHT PIECES RESULTS, all files, then ROWS COLUMNS INNER STRIDE
// LEFT_PANEL_STEP LEFT_ROW_STEP RIGHT_PANEL_STEP RIGHT_ROW_STEP PARTS MORE BACKWARDS. It writes the result, which begins as -777 everywhere, and says what is left over.
int main(int, char **given)
{
    const auto left = contents<double>(given[1]), right = contents<double>(given[2]);
    const auto pieces = contents<int8>(given[3]);
    int numbers[11];
    for (int n = 0; n < 11; n++)
        numbers[n] = std::atoi(given[5 + n]);
    const int most = numbers[8], groups = static_cast<int>(pieces.size());
    std::vector<double> C(static_cast<std::size_t>(numbers[0]) * numbers[3], -777);
    std::vector<double> parts(static_cast<std::size_t>(most + 1) * ITEMS * OWN * OWN, -777);
    std::vector<int> marks(most + 1, 0);
    std::size_t late = 0;
    for (int group = 0; group < groups; group++) {
        group_id = numbers[10] ? groups - 1 - group : group;
        group_meets.assign(1, Meeting(ITEMS));
        warps_meet.assign(ITEMS / 32, Meeting(32));
        run_group(ITEMS, [&] {
            multiply(left.data(), right.data(), C.data(), numbers[0], numbers[1], numbers[2], numbers[3], 0, numbers[4],
                     numbers[5], 0, numbers[6], numbers[7], pieces.data(), parts.data(), marks.data(), numbers[9]);
            late += copies_of[local_id].asked_for.size() + copies_of[local_id].on_their_way.size();
        });
    }
    const bool marked = std::any_of(marks.begin(), marks.end(), [](int mark) { return mark != 0; });
    return late ? 2 : marked ? 3 : written(given[4], {&C}) ? 0 : 1;
}
