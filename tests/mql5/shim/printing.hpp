// Print, PrintFormat, StringFormat. A format that does not fit its arguments ends the program: the terminal
// would print rubbish.
#pragma once
#include "strings.hpp"

namespace mqlrt
{
inline std::string shown(const string &value) { return value.bytes(); }
template <class T>
    requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
std::string shown(T value)
{
    if constexpr (std::is_same_v<T, bool>)
        return value ? "true" : "false";
    else if constexpr (std::is_floating_point_v<T>) {
        char text[64];
        std::snprintf(text, sizeof text, "%.16g", static_cast<double>(value));
        return text;
    } else
        return std::to_string(value);
}

struct Argument
{
    enum Kind { narrow, wide, real, words } kind;
    long whole = 0;
    bool is_signed = true;
    double fraction = 0;
    std::string text;
    Argument(const string &value) : kind(words), text(value.bytes()) {}
    template <class T>
        requires std::is_floating_point_v<T>
    Argument(T value) : kind(real), fraction(value)
    {
    }
    template <class T>
        requires(std::is_integral_v<T> || std::is_enum_v<T>)
    Argument(T value) : kind(sizeof(T) == 8 ? wide : narrow), whole(static_cast<long>(value)), is_signed(T(-1) < T(0))
    {
    }
};

// One conversion, checked; `specification` is what stands between % and the letter, without I64.
inline std::string convert(const std::string &format, const std::string &specification, char letter, bool says_wide, const Argument &argument)
{
    auto refuse = [&](const char *why) { critical("PrintFormat: %" + std::string(1, letter) + " " + why + " in '" + format + "'"); };
    char text[1024];
    if (std::strchr("diuxXoc", letter)) {
        if (argument.kind != Argument::narrow && argument.kind != Argument::wide)
            refuse("got something that is no whole number");
        if (says_wide != (argument.kind == Argument::wide))
            refuse(says_wide ? "with I64 got 4 bytes" : "got 8 bytes and needs I64");
        std::snprintf(text, sizeof text, ("%" + specification + "l" + letter).c_str(), argument.whole);
    } else if (std::strchr("eEfgGaA", letter)) {
        if (argument.kind != Argument::real)
            refuse("got something that is no double");
        std::snprintf(text, sizeof text, ("%" + specification + letter).c_str(), argument.fraction);
    } else if (letter == 's') {
        if (argument.kind != Argument::words)
            refuse("got something that is no string");
        // padding by snprintf, the text itself may be long
        std::string padded = argument.text;
        size_t width = static_cast<size_t>(std::abs(std::atoi(specification.c_str())));
        if (padded.size() < width)
            padded.insert(specification[0] == '-' ? padded.size() : 0, width - padded.size(), ' ');
        return padded;
    } else
        refuse("is no conversion");
    return text;
}

inline std::string formatted(const std::string &format, const std::vector<Argument> &arguments)
{
    std::string out;
    size_t next = 0;
    for (size_t i = 0; i < format.size(); i++) {
        if (format[i] != '%') {
            out += format[i];
            continue;
        }
        if (format[++i] == '%') {
            out += '%';
            continue;
        }
        size_t start = i;
        while (i < format.size() && std::strchr("-+ #0123456789.", format[i]))
            i++;
        std::string specification = format.substr(start, i - start);
        bool says_wide = format.compare(i, 3, "I64") == 0;
        if (says_wide)
            i += 3;
        if (next >= arguments.size())
            critical("PrintFormat: too few arguments for '" + format + "'");
        out += convert(format, specification, format[i], says_wide, arguments[next++]);
    }
    if (next != arguments.size())
        critical("PrintFormat: too many arguments for '" + format + "'");
    return out;
}
} // namespace mqlrt

template <class... A> void Print(const A &...arguments)
{
    ((std::cout << mqlrt::shown(arguments)), ...);
    std::cout << std::endl;
}
template <class... A> string StringFormat(const string &format, const A &...arguments)
{
    return mqlrt::formatted(format.bytes(), {mqlrt::Argument(arguments)...});
}
template <class... A> void PrintFormat(const string &format, const A &...arguments)
{
    std::cout << mqlrt::formatted(format.bytes(), {mqlrt::Argument(arguments)...}) << std::endl;
}
