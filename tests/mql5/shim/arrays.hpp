// Arrays. The translator writes `T a[]` as Dynamic<T>, `T a[4]` as Static<T,4>, `T &a[]` as Ref<T> and
// `const T &a[]` as const View<T>&. An index out of range ends the program, as in the terminal.
#pragma once
#include "types.hpp"

namespace mqlrt
{
[[noreturn]] inline void out_of_range(long index, long size)
{
    critical("array out of range: index " + std::to_string(index) + " of " + std::to_string(size));
}

template <class T> struct Dynamic
{
    using Element = T;
    std::vector<T> items;
    Dynamic() = default;
    Dynamic(std::initializer_list<T> list) : items(list) {}
    Dynamic(const Dynamic &) = default;
    Dynamic &operator=(const Dynamic &) = delete; // MQL5 has ArrayCopy for this
    T &operator[](long i)
    {
        if (i < 0 || i >= static_cast<long>(items.size()))
            out_of_range(i, static_cast<long>(items.size()));
        return items[static_cast<size_t>(i)];
    }
    const T &operator[](long i) const { return const_cast<Dynamic *>(this)->operator[](i); }
};

// An aggregate, so that it may stand in a union; not set to zero, as in MQL5.
template <class T, size_t N> struct Static
{
    T items[N];
    T &operator[](long i)
    {
        if (i < 0 || i >= static_cast<long>(N))
            out_of_range(i, static_cast<long>(N));
        return items[i];
    }
    const T &operator[](long i) const { return const_cast<Static *>(this)->operator[](i); }
};

template <class T> struct Ref
{
    using Element = T;
    Dynamic<T> *dynamic = nullptr;
    T *fixed = nullptr;
    int length = 0;
    Ref(Dynamic<T> &array) : dynamic(&array) {}
    template <size_t N> Ref(Static<T, N> &array) : fixed(array.items), length(static_cast<int>(N)) {}
    T *data() const { return dynamic ? dynamic->items.data() : fixed; }
    int size() const { return dynamic ? static_cast<int>(dynamic->items.size()) : length; }
    T &operator[](long i) const
    {
        if (i < 0 || i >= size())
            out_of_range(i, size());
        return data()[i];
    }
};

template <class T> struct View
{
    using Element = T;
    const Dynamic<T> *dynamic = nullptr;
    const T *fixed = nullptr;
    int length = 0;
    View(const Dynamic<T> &array) : dynamic(&array) {}
    template <size_t N> View(const Static<T, N> &array) : fixed(array.items), length(static_cast<int>(N)) {}
    View(const Ref<T> &array) : dynamic(array.dynamic), fixed(array.fixed), length(array.length) {}
    const T *data() const { return dynamic ? dynamic->items.data() : fixed; }
    int size() const { return dynamic ? static_cast<int>(dynamic->items.size()) : length; }
    const T &operator[](long i) const
    {
        if (i < 0 || i >= size())
            out_of_range(i, size());
        return data()[i];
    }
};

template <class T> Ref<T> ref(Dynamic<T> &array) { return array; }
template <class T, size_t N> Ref<T> ref(Static<T, N> &array) { return array; }
template <class T> Ref<T> ref(Ref<T> array) { return array; }
template <class T> View<T> view(const Dynamic<T> &array) { return array; }
template <class T, size_t N> View<T> view(const Static<T, N> &array) { return array; }
template <class T> View<T> view(const Ref<T> &array) { return array; }
template <class T> View<T> view(const View<T> &array) { return array; }

// New elements hold rubbish and not zeros, so that a forgotten ArrayInitialize shows.
template <class T> void resize(Dynamic<T> &array, int length)
{
    size_t old = array.items.size();
    array.items.resize(static_cast<size_t>(length));
    if constexpr (std::is_arithmetic_v<T>)
        for (size_t i = old; i < array.items.size(); i++) {
            uint32_t noise = rubbish()();
            std::memcpy(&array.items[i], &noise, std::min(sizeof noise, sizeof(T)));
        }
}
} // namespace mqlrt

template <class A> int ArraySize(const A &array) { return mqlrt::view(array).size(); }

// $MQL_LARGEST_ARRAY stands for a terminal that is short of memory.
template <class A> int ArrayResize(A &&array, int length)
{
    auto target = mqlrt::ref(array);
    if (!target.dynamic || length < 0 || length > mqlrt::number("MQL_LARGEST_ARRAY", INT_MAX)) {
        mqlrt::last_error = 4007;
        return -1;
    }
    mqlrt::resize(*target.dynamic, length);
    return length;
}

template <class A> void ArrayFree(A &&array)
{
    if (auto target = mqlrt::ref(array); target.dynamic)
        target.dynamic->items.clear();
}

template <class A, class V> int ArrayInitialize(A &&array, V value)
{
    auto target = mqlrt::ref(array);
    for (int i = 0; i < target.size(); i++)
        target.data()[i] = static_cast<typename decltype(target)::Element>(value);
    return target.size();
}

// Converts values between types, never bits; a dynamic target grows, a static one takes what fits.
template <class A, class B> int ArrayCopy(A &&target_array, const B &source_array, int target_start = 0, int source_start = 0, int count = WHOLE_ARRAY)
{
    auto target = mqlrt::ref(target_array);
    auto source = mqlrt::view(source_array);
    int length = source.size() - source_start;
    if (count >= 0)
        length = std::min(length, count);
    if (length <= 0)
        return 0;
    if (target.dynamic && target.size() < target_start + length)
        mqlrt::resize(*target.dynamic, target_start + length);
    length = std::max(0, std::min(length, target.size() - target_start));
    using To = typename decltype(target)::Element;
    using From = typename decltype(source)::Element;
    if constexpr (std::is_same_v<To, From> && std::is_trivially_copyable_v<To>)
        std::memmove(target.data() + target_start, source.data() + source_start, sizeof(To) * static_cast<size_t>(length));
    else
        for (int i = 0; i < length; i++)
            target.data()[target_start + i] = static_cast<To>(source.data()[source_start + i]);
    return length;
}
