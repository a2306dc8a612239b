// Files of the terminal's sandbox, which is $MQL_OUT here. $MQL_DISK_BYTES stands for a disk with that much room,
// $MQL_FILE_IN_USE for a file that another program holds open: as on Windows, it cannot be written, moved or deleted.
#pragma once
#include "program.hpp"
#include <filesystem>
#include <fstream>

enum { FILE_WRITE = 2, FILE_BIN = 4, FILE_REWRITE = 512 };

namespace mqlrt
{
struct OpenFile
{
    std::filesystem::path path;
    std::ofstream stream;
};
inline std::map<int, OpenFile> files;
inline int last_handle = 0;
inline long disk_bytes = number("MQL_DISK_BYTES", LONG_MAX);
inline std::filesystem::path sandboxed(const string &name)
{
    std::string text = name.bytes();
    std::replace(text.begin(), text.end(), '\\', '/');
    if (text.find("..") != std::string::npos || text[0] == '/')
        critical("'" + text + "' leaves the folder MQL5/Files");
    return std::filesystem::path(setting("MQL_OUT", ".")) / text;
}
inline bool in_use(const std::filesystem::path &path)
{
    for (const auto &[handle, file] : files)
        if (file.path == path)
            return true;
    std::string name = setting("MQL_FILE_IN_USE");
    return !name.empty() && path == sandboxed(name);
}
inline bool failed(int code)
{
    last_error = code;
    return false;
}
} // namespace mqlrt

inline int FileOpen(const string &name, int flags)
{
    if (flags != (FILE_WRITE | FILE_BIN))
        mqlrt::critical("FileOpen: these flags are not in the shim");
    auto path = mqlrt::sandboxed(name);
    std::error_code problem;
    std::filesystem::create_directories(path.parent_path(), problem);
    std::ofstream stream;
    if (!mqlrt::in_use(path))
        stream.open(path, std::ios::binary);
    if (!stream.is_open()) {
        mqlrt::last_error = 5004;
        return INVALID_HANDLE;
    }
    mqlrt::files[++mqlrt::last_handle] = {path, std::move(stream)};
    return mqlrt::last_handle;
}
template <class A> uint FileWriteArray(int handle, const A &array)
{
    auto source = mqlrt::view(array);
    size_t item = sizeof(typename decltype(source)::Element);
    long room = std::min<long>(source.size(), mqlrt::disk_bytes / static_cast<long>(item));
    mqlrt::disk_bytes -= room * static_cast<long>(item);
    mqlrt::files.at(handle).stream.write(reinterpret_cast<const char *>(source.data()), room * static_cast<long>(item));
    if (room < source.size())
        mqlrt::last_error = 5026;
    return static_cast<uint>(room);
}
inline void FileClose(int handle) { mqlrt::files.erase(handle); }
inline bool FileDelete(const string &name)
{
    auto path = mqlrt::sandboxed(name);
    std::error_code problem;
    return (!mqlrt::in_use(path) && std::filesystem::remove(path, problem)) || mqlrt::failed(5006);
}
inline bool FileMove(const string &from, int where, const string &to, int mode)
{
    if (where != 0 || (mode & ~FILE_REWRITE) != 0)
        mqlrt::critical("FileMove: the folder of all terminals is not in the shim");
    auto source = mqlrt::sandboxed(from);
    auto target = mqlrt::sandboxed(to);
    if (!std::filesystem::exists(source))
        return mqlrt::failed(5019);
    if (std::filesystem::is_directory(target))
        return mqlrt::failed(5018);
    bool taken = std::filesystem::exists(target) && mode != FILE_REWRITE;
    std::error_code problem;
    if (taken || mqlrt::in_use(source) || mqlrt::in_use(target))
        return mqlrt::failed(5020);
    std::filesystem::rename(source, target, problem);
    return !problem || mqlrt::failed(5020);
}
