// Text.
#pragma once
#include "arrays.hpp"

inline int StringLen(const string &text) { return static_cast<int>(text.units().size()); }

inline long StringToInteger(const string &text) { return std::atol(text.bytes().c_str()); }

inline string StringSubstr(const string &text, int start, int length = -1)
{
    if (start < 0 || start > StringLen(text))
        return "";
    return string(text.units().substr(static_cast<size_t>(start), length < 0 ? std::u16string::npos : static_cast<size_t>(length)));
}

inline int StringFind(const string &text, const string &part)
{
    auto at = text.units().find(part.units());
    return at == std::u16string::npos ? -1 : static_cast<int>(at);
}

// How often it was replaced; -1 when there is nothing to look in or for.
inline int StringReplace(string &text, const string &part, const string &replacement)
{
    if (text.units().empty() || part.units().empty())
        return -1;
    int replaced = 0;
    for (size_t at = 0; (at = text.units().find(part.units(), at)) != std::u16string::npos; at += replacement.units().size(), replaced++)
        text.units().replace(at, part.units().size(), replacement.units());
    return replaced;
}

inline int StringTrimLeft(string &text)
{
    auto at = std::min(text.units().find_first_not_of(u" \t\r\n"), text.units().size());
    text.units().erase(0, at);
    return static_cast<int>(at);
}

inline int StringTrimRight(string &text)
{
    size_t before = text.units().size();
    text.units().erase(text.units().find_last_not_of(u" \t\r\n") + 1);
    return static_cast<int>(before - text.units().size());
}

// An empty string gives no part at all, as the reference says of a failed split.
inline int StringSplit(const string &text, ushort separator, mqlrt::Ref<string> parts)
{
    auto &items = parts.dynamic->items;
    items.clear();
    if (text.units().empty())
        return 0;
    size_t start = 0;
    for (size_t i = 0; i <= text.units().size(); i++)
        if (i == text.units().size() || text.units()[i] == separator) {
            items.push_back(string(text.units().substr(start, i - start)));
            start = i + 1;
        }
    return static_cast<int>(items.size());
}

// Only uchar: builds from 5100 on refuse char. With count -1 the terminating zero is copied as well.
inline int StringToCharArray(const string &text, mqlrt::Ref<uchar> array, int start, int count, uint codepage)
{
    if (codepage != CP_UTF8)
        mqlrt::critical("StringToCharArray without CP_UTF8 depends on the code page of the computer");
    std::string bytes = text.bytes() + '\0';
    int length = static_cast<int>(bytes.size());
    if (count >= 0)
        length = std::min(length, count);
    if (array.dynamic && array.size() < start + length)
        mqlrt::resize(*array.dynamic, start + length);
    length = std::min(length, array.size() - start);
    if (length > 0)
        std::memcpy(array.data() + start, bytes.data(), static_cast<size_t>(length));
    return length;
}

inline string CharArrayToString(const mqlrt::View<uchar> &array, int start, int count, uint codepage)
{
    if (codepage != CP_UTF8)
        mqlrt::critical("CharArrayToString without CP_UTF8 depends on the code page of the computer");
    int length = array.size() - start;
    if (count >= 0)
        length = std::min(length, count);
    if (length <= 0)
        return "";
    std::string bytes(reinterpret_cast<const char *>(array.data()) + start, static_cast<size_t>(length));
    return bytes.substr(0, bytes.find('\0'));
}
