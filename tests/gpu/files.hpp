// files.hpp - arrays that lie in files, for the programs of this folder.
#include <cstdio>
#include <cstdlib>
#include <vector>

inline std::FILE *opened(const char *path, const char *how)
{
    std::FILE *const file = std::fopen(path, how);
    if (!file)
        std::exit(5);
    return file;
}

template <class T> std::vector<T> contents(const char *path)
{
    std::FILE *const file = opened(path, "rb");
    std::fseek(file, 0, SEEK_END);
    std::vector<T> out(std::ftell(file) / sizeof(T));
    std::rewind(file);
    if (std::fread(out.data(), sizeof(T), out.size(), file) != out.size())
        std::exit(5);
    std::fclose(file);
    return out;
}

// One array behind the other; whether all were written.
inline bool written(const char *path, std::initializer_list<const std::vector<double> *> arrays)
{
    std::FILE *const file = opened(path, "wb");
    bool good = true;
    for (const std::vector<double> *array : arrays)
        good &= std::fwrite(array->data(), sizeof(double), array->size(), file) == array->size();
    return std::fclose(file) == 0 && good;
}
