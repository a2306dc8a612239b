// Time, numbers, the program's surroundings and its end.
#pragma once
#include "strings.hpp"

enum { MQL_PROGRAM_TYPE = 1, MQL_TESTER = 6 };
enum { PROGRAM_INDICATOR = 4 };

namespace mqlrt
{
inline const auto started = std::chrono::steady_clock::now();
inline bool in_tester() { return number("MQL_TESTER", 0) == 1; }
inline bool in_indicator() { return setting("MQL_PROGRAM", "script") == "indicator"; }

inline ulong microseconds()
{
    return static_cast<ulong>(std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - started).count());
}

// $MQL_STOP_AFTER_MS stands for the user who removes the program. The terminal ends by force what has not
// ended 3 s later; a thread does that here, and the exit line says how long the program took.
inline long stop_after_ms() { return number("MQL_STOP_AFTER_MS", -1); }
inline bool stopped() { return stop_after_ms() >= 0 && microseconds() / 1000 >= static_cast<ulong>(stop_after_ms()); }
inline void watch()
{
    if (stop_after_ms() < 0)
        return;
    std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(stop_after_ms() + 3000));
        critical("the program did not end within 3 s of being stopped");
    }).detach();
}
inline void say_how_it_ended()
{
    if (stopped())
        std::cerr << "ended_ms_after_stop=" << microseconds() / 1000 - static_cast<ulong>(stop_after_ms()) << std::endl;
}

inline uint random_state = 1;
inline long clock_speed = number("MQL_CLOCK_SPEED", 1);
// Milliseconds from the system's start to that of the program.
inline const ulong system_milliseconds =
    std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();

template <class T> T input(const char *name, T otherwise)
{
    const char *value = std::getenv((std::string("MQL_INPUT_") + name).c_str());
    if (!value)
        return otherwise;
    if constexpr (std::is_same_v<T, string>)
        return string(value);
    else if constexpr (std::is_same_v<T, bool>)
        return !std::strcmp(value, "true");
    else if constexpr (std::is_floating_point_v<T>)
        return static_cast<T>(std::atof(value));
    else
        return static_cast<T>(std::is_unsigned_v<T> ? std::strtoull(value, nullptr, 10) : static_cast<ulong>(std::strtoll(value, nullptr, 10)));
}
} // namespace mqlrt

inline int GetLastError() { return mqlrt::last_error; }
inline void ResetLastError() { mqlrt::last_error = 0; }
inline bool IsStopped() { return mqlrt::stopped(); }
inline long MQLInfoInteger(int property) { return property == MQL_TESTER ? mqlrt::in_tester() : mqlrt::in_indicator() ? PROGRAM_INDICATOR : 1; }

inline ulong GetMicrosecondCount() { return mqlrt::microseconds(); }
// $MQL_CLOCK_SPEED times as fast, for tests of waits that are too long to wait for.
inline ulong GetTickCount64() { return mqlrt::system_milliseconds + mqlrt::microseconds() * static_cast<ulong>(mqlrt::clock_speed) / 1000; }
inline void Sleep(int milliseconds)
{
    if (!mqlrt::in_indicator()) // no effect there
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}
inline datetime TimeLocal() { return datetime(std::time(nullptr)); }
inline string TimeToString(datetime time)
{
    time_t seconds = time.seconds;
    tm parts;
    gmtime_r(&seconds, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y.%m.%d %H:%M", &parts);
    return text;
}

template <class A, class B> std::common_type_t<A, B> MathMin(A a, B b) { return b < a ? b : a; }
template <class A, class B> std::common_type_t<A, B> MathMax(A a, B b) { return a < b ? b : a; }
inline double MathAbs(double value) { return std::fabs(value); }
inline double MathLog(double value) { return std::log(value); }
inline double MathSqrt(double value) { return std::sqrt(value); }
inline bool MathIsValidNumber(double value) { return std::isfinite(value); }
inline void MathSrand(int seed) { mqlrt::random_state = static_cast<uint>(seed); }
inline int MathRand()
{
    mqlrt::random_state = mqlrt::random_state * 214013u + 2531011u;
    return static_cast<int>(mqlrt::random_state >> 16 & 0x7FFF);
}
