// The simple types, datetime, string, and the limits of the whole numbers.
#pragma once
#include "runtime.hpp"

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
static_assert(sizeof(long) == 8, "an MQL5 long has 8 bytes");

#define WHOLE_ARRAY (-1)
#define INVALID_HANDLE (-1)
#define CP_UTF8 65001u

struct datetime
{
    long seconds = 0;
    constexpr datetime(long value = 0) : seconds(value) {}
    constexpr operator long() const { return seconds; }
};

class string
{
    std::u16string wide;

  public:
    string() = default;
    string(const char *text) : wide(mqlrt::utf16(text)) {}
    string(const std::string &text) : wide(mqlrt::utf16(text)) {}
    string(std::u16string text) : wide(std::move(text)) {}
    // (string)5 is written out; string s=5 only earns a warning from MetaEditor, and is refused here.
    template <class T>
        requires std::is_integral_v<T>
    explicit string(T value) : wide(mqlrt::utf16(std::is_same_v<T, bool> ? (value ? "true" : "false") : std::to_string(value)))
    {
    }

    const std::u16string &units() const { return wide; }
    std::u16string &units() { return wide; }
    std::string bytes() const { return mqlrt::utf8(wide); }
    string &operator+=(const string &other)
    {
        wide += other.wide;
        return *this;
    }
    friend string operator+(const string &left, const string &right) { return string(left.wide + right.wide); }
    friend bool operator==(const string &left, const string &right) { return left.wide == right.wide; }
    friend bool operator!=(const string &left, const string &right) { return left.wide != right.wide; }
};

namespace mqlrt
{
// The translator writes every text literal as "..."_mql, so that "a"+"b" joins.
inline string operator""_mql(const char *text, size_t length) { return string(std::string(text, length)); }
} // namespace mqlrt
using mqlrt::operator""_mql;
