// Files of the terminal's sandbox, which is $MQL_OUT here. $MQL_DISK_BYTES stands for a disk with that much room.
#pragma once
#include "program.hpp"
#include <filesystem>
#include <fstream>

enum { FILE_WRITE = 2, FILE_BIN = 4 };

namespace mqlrt
{
inline std::map<int, std::ofstream> files;
inline long disk_bytes = number("MQL_DISK_BYTES", LONG_MAX);
inline std::filesystem::path sandboxed(const string &name)
{
    std::string text = name.bytes();
    std::replace(text.begin(), text.end(), '\\', '/');
    if (text.find("..") != std::string::npos || text[0] == '/')
        critical("'" + text + "' leaves the folder MQL5/Files");
    return std::filesystem::path(setting("MQL_OUT", ".")) / text;
}
} // namespace mqlrt

inline int FileOpen(const string &name, int flags)
{
    if (flags != (FILE_WRITE | FILE_BIN))
        mqlrt::critical("FileOpen: these flags are not in the shim");
    auto path = mqlrt::sandboxed(name);
    std::error_code problem;
    std::filesystem::create_directories(path.parent_path(), problem);
    std::ofstream file(path, std::ios::binary);
    if (!file) {
        mqlrt::last_error = 5004;
        return INVALID_HANDLE;
    }
    int handle = static_cast<int>(mqlrt::files.size()) + 1;
    mqlrt::files[handle] = std::move(file);
    return handle;
}
template <class A> uint FileWriteArray(int handle, const A &array)
{
    auto source = mqlrt::view(array);
    size_t item = sizeof(typename decltype(source)::Element);
    long room = std::min<long>(source.size(), mqlrt::disk_bytes / static_cast<long>(item));
    mqlrt::disk_bytes -= room * static_cast<long>(item);
    mqlrt::files.at(handle).write(reinterpret_cast<const char *>(source.data()), room * static_cast<long>(item));
    if (room < source.size())
        mqlrt::last_error = 5026;
    return static_cast<uint>(room);
}
inline void FileClose(int handle) { mqlrt::files.at(handle).close(); }
inline bool FileDelete(const string &name) { return std::filesystem::remove(mqlrt::sandboxed(name)); }
