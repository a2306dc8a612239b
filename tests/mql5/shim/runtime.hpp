// What the built-ins share: the last error, the settings of a test run, text conversion.
// Everything that is not MQL5 lives in namespace mqlrt; every other name here is a promise about MQL5
// (tests/mql5/builtins.txt lists them, and a test compares).
#pragma once
#include <algorithm>
#include <cfloat>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace mqlrt
{
inline int last_error = 0;
inline std::map<std::string, std::string> properties;

inline std::string setting(const char *name, const char *otherwise = "")
{
    const char *value = std::getenv(name);
    return value ? value : otherwise;
}

inline long number(const char *name, long otherwise)
{
    const char *value = std::getenv(name);
    return value ? std::atol(value) : otherwise;
}

// The terminal stops a program that reads past an array; so do we, with an exit code of its own.
[[noreturn]] inline void critical(const std::string &what)
{
    std::cout.flush();
    std::cerr << "MQL5 critical error: " << what << std::endl;
    _exit(70);
}

inline std::mt19937 &rubbish()
{
    static std::mt19937 generator(static_cast<unsigned>(number("MQL_SEED", 1)));
    return generator;
}

// Bytes that are no UTF-8 become the replacement character.
inline std::u16string utf16(const std::string &text)
{
    std::u16string wide;
    auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    for (size_t i = 0; i < text.size();) {
        unsigned lead = byte(i);
        size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
        uint32_t point = length == 1 ? lead : lead & (0x7Fu >> length);
        for (size_t k = 1; k < length; k++) {
            if ((byte(i + k) & 0xC0) != 0x80)
                length = 0;
            point = point << 6 | (byte(i + k) & 63);
        }
        if (length == 0)
            point = 0xFFFD;
        i += length ? length : 1;
        if (point >= 0x10000) {
            wide += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
            wide += static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 1023));
        } else
            wide += static_cast<char16_t>(point);
    }
    return wide;
}

inline std::string utf8(const std::u16string &wide)
{
    std::string text;
    for (size_t i = 0; i < wide.size(); i++) {
        uint32_t point = wide[i];
        if (point >= 0xD800 && point < 0xDC00 && i + 1 < wide.size())
            point = 0x10000 + ((point - 0xD800) << 10) + (wide[++i] - 0xDC00);
        if (point < 0x80) {
            text += static_cast<char>(point);
            continue;
        }
        int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        text += static_cast<char>((0xFF00u >> (more + 1) & 0xFF) | point >> 6 * more);
        for (int k = more - 1; k >= 0; k--)
            text += static_cast<char>(0x80 | (point >> 6 * k & 63));
    }
    return text;
}
} // namespace mqlrt
