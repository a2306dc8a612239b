// Bars from files: $MQL_DATA/SYMBOL.csv or SYMBOL_*.csv, either the terminal's own export (tabs, <DATE>
// <TIME> <OPEN> ...) or `time,open,high,low,close` with seconds of 1970. The bars of a file are finished
// ones; position 0 is a bar in the making that the shim adds, with a price that nobody could mistake.
//   MQL_HISTORY_CALLS  that many calls answer -1 or with a part, as a terminal does that still downloads
#pragma once
#include "program.hpp"
#include <filesystem>
#include <fstream>

enum ENUM_TIMEFRAMES { PERIOD_H1 = 16385 };
enum { SERIES_SYNCHRONIZED = 4 };

#pragma pack(push, 1)
struct MqlRates
{
    datetime time;
    double open, high, low, close;
    long tick_volume;
    int spread;
    long real_volume;
};
#pragma pack(pop)
static_assert(sizeof(MqlRates) == 60, "MQL5 structures are packed");

namespace mqlrt
{
inline long calls_left = number("MQL_HISTORY_CALLS", 0);
inline const long forming_time = 4102444800; // 2100.01.01: the same for all, so that joining would keep it

inline std::filesystem::path price_file(const std::string &symbol)
{
    std::error_code problem;
    for (auto &entry : std::filesystem::directory_iterator(setting("MQL_DATA", "."), problem)) {
        std::string name = entry.path().filename().string();
        if (entry.path().extension() == ".csv" && name.compare(0, symbol.size(), symbol) == 0 && (name[symbol.size()] == '.' || name[symbol.size()] == '_'))
            return entry.path();
    }
    return {};
}

inline bool read_bar(const std::string &line, MqlRates &bar)
{
    int year, month, day, hour = 0, minute = 0, second = 0, used = 0;
    double open, high, low, close;
    const char *rest = line.c_str();
    if (std::sscanf(rest, "%d.%d.%d%n", &year, &month, &day, &used) == 3) {
        rest += used;
        if (std::sscanf(rest, "%d:%d:%d%n", &hour, &minute, &second, &used) == 3)
            rest += used;
        tm parts{};
        parts.tm_year = year - 1900;
        parts.tm_mon = month - 1;
        parts.tm_mday = day;
        parts.tm_hour = hour;
        parts.tm_min = minute;
        parts.tm_sec = second;
        bar.time = timegm(&parts);
        if (std::sscanf(rest, "%lf %lf %lf %lf", &open, &high, &low, &close) != 4)
            return false;
    } else {
        long seconds;
        if (std::sscanf(rest, "%ld,%lf,%lf,%lf,%lf", &seconds, &open, &high, &low, &close) != 5)
            return false;
        bar.time = seconds;
    }
    bar.open = open;
    bar.high = high;
    bar.low = low;
    bar.close = close;
    return true;
}

inline const std::vector<MqlRates> &bars_of(const std::string &symbol)
{
    static std::map<std::string, std::vector<MqlRates>> known;
    auto [found, is_new] = known.try_emplace(symbol);
    if (is_new) {
        std::ifstream file(price_file(symbol));
        MqlRates bar{};
        for (std::string line; std::getline(file, line);)
            if (read_bar(line, bar))
                found->second.push_back(bar);
        bar.time = forming_time;
        bar.open = bar.high = bar.low = bar.close = 1e9;
        found->second.push_back(bar);
    }
    return found->second;
}
} // namespace mqlrt

namespace mqlrt
{
// Market Watch: a symbol for each file of prices, by name
inline std::vector<std::string> watched()
{
    std::vector<std::string> names;
    std::error_code problem;
    for (auto &entry : std::filesystem::directory_iterator(setting("MQL_DATA", "."), problem))
        if (entry.path().extension() == ".csv")
            names.push_back(entry.path().stem().string().substr(0, entry.path().stem().string().find('_')));
    std::sort(names.begin(), names.end());
    return names;
}
} // namespace mqlrt

inline int SymbolsTotal(bool) { return static_cast<int>(mqlrt::watched().size()); }

inline string SymbolName(int index, bool)
{
    auto names = mqlrt::watched();
    return index >= 0 && index < static_cast<int>(names.size()) ? string(names[static_cast<ulong>(index)].c_str()) : string("");
}

inline bool SymbolSelect(const string &symbol, bool)
{
    if (!mqlrt::price_file(symbol.bytes()).empty())
        return true;
    mqlrt::last_error = 4301;
    return false;
}

inline long SeriesInfoInteger(const string &, ENUM_TIMEFRAMES, int) { return mqlrt::calls_left <= 0; }

inline int CopyRates(const string &symbol, ENUM_TIMEFRAMES, int start, int count, mqlrt::Ref<MqlRates> target)
{
    auto &bars = mqlrt::bars_of(symbol.bytes());
    int length = std::min(count, static_cast<int>(bars.size()) - start);
    if (mqlrt::calls_left > 0 && length > 0)
        length = mqlrt::calls_left-- % 2 ? 0 : (length + 1) / 2;
    if (length <= 0) {
        mqlrt::last_error = 4401;
        return -1;
    }
    target.dynamic->items.assign(bars.end() - start - length, bars.end() - start);
    return length;
}
