// The terminal's OpenCL functions over a real loader library, opened at run time: the kernels run on the OpenCL
// device of this machine. A queue works as the terminal's: CLExecute queues, CLBufferRead waits.
//   MQL_OPENCL_LIBRARY  the loader; without it the terminal has no OpenCL
//   MQL_PROCESSOR       the name that PoCL 3.0 is to give its compiler where it knows none (mtbridge.compute.embedded)
//   MQL_OPENCL_FAIL     NAME or NAME:n, the function that fails, from its n-th call on
//   MQL_OPENCL_GROUP    a largest group below the device's own
//   MQL_OPENCL_WITHOUT  an extension, "fp64", or a kind of device, "cpu", that the device does not have
// New buffers are full of NaN, and a handle that is still open at the end is a critical error.
#pragma once
#include "program.hpp"
#include <dlfcn.h>
#include <fcntl.h>

enum { CL_USE_ANY = -1, CL_USE_GPU_ONLY = -2, CL_USE_CPU_ONLY = -3, CL_USE_GPU_DOUBLE_ONLY = -4 };
enum { CL_MEM_READ_WRITE = 1, CL_MEM_READ_ONLY = 4, CL_MEM_ALLOC_HOST_PTR = 16 };
enum { CL_DEVICE_CPU = 2 };
// the numbers are those of OpenCL where there is one
enum ENUM_OPENCL_PROPERTY_INTEGER {
    CL_DEVICE_COUNT = 1,
    CL_LAST_ERROR = 2,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_KERNEL_WORK_GROUP_SIZE = 0x11B0
};
enum ENUM_OPENCL_PROPERTY_STRING {
    CL_ERROR_DESCRIPTION = 3,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030
};

namespace mqlrt
{
using Size = const size_t *;
enum class Cl { context, program, kernel, buffer };
struct ClObject
{
    Cl kind;
    void *handle = nullptr, *device = nullptr, *queue = nullptr;
    size_t bytes = 0;
};
inline std::map<int, ClObject> cl_objects;
inline int next_cl_object = 1001; // far from the numbers of devices
inline int cl_error = 0;
inline std::map<std::string, long> cl_calls;

inline void *cl_library()
{
    static void *library = setting("MQL_OPENCL_LIBRARY").empty() ? nullptr : ::dlopen(setting("MQL_OPENCL_LIBRARY").c_str(), RTLD_NOW);
    return library;
}
template <class R, class... A> R cl_call(const char *name, A... arguments)
{
    auto *function = reinterpret_cast<R (*)(A...)>(::dlsym(cl_library(), name));
    if (!function)
        critical(std::string("the OpenCL loader has no ") + name);
    return function(arguments...);
}
// False, with the terminal's code as last error, where an OpenCL call did not succeed.
inline bool cl_done(int status, int code)
{
    cl_error = status;
    if (status)
        last_error = code;
    return status == 0;
}
inline int cl_keep(const ClObject &object)
{
    cl_objects[next_cl_object] = object;
    return next_cl_object++;
}
inline ClObject *cl_find(int handle, Cl kind)
{
    auto found = cl_objects.find(handle);
    if (found != cl_objects.end() && found->second.kind == kind)
        return &found->second;
    last_error = 5102;
    return nullptr;
}
inline void cl_free(int handle, Cl kind, const char *release)
{
    if (!cl_find(handle, kind))
        critical(std::string(release) + " of a handle that is not open");
    cl_call<int>(release, cl_objects[handle].handle);
    cl_objects.erase(handle);
}
inline bool cl_fails(const std::string &name, int code)
{
    std::string wanted = setting("MQL_OPENCL_FAIL");
    size_t colon = wanted.find(':');
    if (name != wanted.substr(0, colon) || ++cl_calls[name] < (colon == std::string::npos ? 1 : std::atol(wanted.c_str() + colon + 1)))
        return false;
    cl_error = -5;
    last_error = code;
    return true;
}

inline std::string cl_text(const char *query, void *object, uint property)
{
    size_t size = 0;
    if (cl_call<int>(query, object, property, size_t{0}, static_cast<void *>(nullptr), &size))
        return "";
    std::string text(size, 0);
    cl_call<int>(query, object, property, size, static_cast<void *>(text.data()), static_cast<size_t *>(nullptr));
    return text.c_str();
}
// Read through /proc, so that a wrong guess of an address cannot crash.
inline std::string memory_at(uintptr_t address, size_t size)
{
    static int memory = ::open("/proc/self/mem", O_RDONLY);
    std::string bytes(size, 0);
    ssize_t got = ::pread(memory, bytes.data(), size, static_cast<off_t>(address));
    return bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(got, 0)));
}
// What mtbridge.compute.embedded.name_the_processor does, in the same record of PoCL 3.0 and in no other.
inline void name_the_processor(void *device, const std::string &version, const std::string &driver)
{
    std::string name = setting("MQL_PROCESSOR");
    if (name.empty() || version.find("PoCL") == std::string::npos || driver.substr(0, 3) != "3.0")
        return;
    auto at = reinterpret_cast<uintptr_t>(device);
    std::string record = memory_at(at, 1024);
    for (size_t offset = 8; offset + 8 <= record.size(); offset += 8) {
        uintptr_t before = 0, here = 0;
        std::memcpy(&before, &record[offset - 8], 8);
        std::memcpy(&here, &record[offset], 8);
        if (memory_at(before, 7) == "x86_64-" && memory_at(here, 8) == std::string("generic\0", 8)) {
            char *lasting = ::strdup(name.c_str());
            std::memcpy(reinterpret_cast<void *>(at + offset), &lasting, 8);
            return;
        }
    }
}
// Every device of every platform, in the loader's order.
inline const std::vector<void *> &cl_devices()
{
    static const std::vector<void *> devices = [] {
        std::vector<void *> found;
        uint count = 0;
        if (!cl_library() || cl_call<int>("clGetPlatformIDs", 0u, static_cast<void **>(nullptr), &count))
            return found;
        std::vector<void *> platforms(count);
        cl_call<int>("clGetPlatformIDs", count, platforms.data(), static_cast<uint *>(nullptr));
        for (void *platform : platforms) {
            const ulong all = 0xFFFFFFFF;
            if (cl_call<int>("clGetDeviceIDs", platform, all, 0u, static_cast<void **>(nullptr), &count))
                continue;
            size_t old = found.size();
            found.resize(old + count);
            cl_call<int>("clGetDeviceIDs", platform, all, count, found.data() + old, static_cast<uint *>(nullptr));
            for (size_t i = old; i < found.size(); i++)
                name_the_processor(found[i], cl_text("clGetDeviceInfo", found[i], CL_DEVICE_VERSION), cl_text("clGetDeviceInfo", found[i], 0x102D));
        }
        return found;
    }();
    return devices;
}
inline long cl_number(void *device, uint property)
{
    long value = 0;
    if (!cl_done(cl_call<int>("clGetDeviceInfo", device, property, sizeof value, static_cast<void *>(&value), static_cast<size_t *>(nullptr)), 5101))
        return -1;
    return property == CL_DEVICE_TYPE && setting("MQL_OPENCL_WITHOUT") == "cpu" ? 4 : value;
}
// The device of a context, or of a number; null where there is none.
inline void *cl_device(int handle)
{
    if (handle >= 0 && handle < static_cast<int>(cl_devices().size()))
        return cl_devices()[static_cast<size_t>(handle)];
    auto *context = cl_find(handle, Cl::context);
    return context ? context->device : nullptr;
}
// Elements of an array as bytes; the count is in elements, as in the terminal.
template <class A> std::pair<const char *, size_t> cl_bytes(const A &array, uint start, uint count)
{
    auto elements = view(array);
    using Element = typename decltype(elements)::Element;
    size_t there = static_cast<size_t>(elements.size());
    if (start > there || (count != static_cast<uint>(WHOLE_ARRAY) && count > there - start))
        critical("an OpenCL buffer and an array: the count goes past the array");
    size_t taken = count == static_cast<uint>(WHOLE_ARRAY) ? there - start : count;
    return {reinterpret_cast<const char *>(elements.data() + start), taken * sizeof(Element)};
}
inline void say_what_is_open()
{
    if (!cl_objects.empty())
        critical("the program ended with " + std::to_string(cl_objects.size()) + " open OpenCL handles");
}
} // namespace mqlrt

inline long CLGetInfoInteger(int handle, ENUM_OPENCL_PROPERTY_INTEGER property)
{
    using namespace mqlrt;
    if (property == CL_DEVICE_COUNT)
        return static_cast<long>(cl_devices().size());
    if (property == CL_LAST_ERROR)
        return cl_error;
    if (property == CL_KERNEL_WORK_GROUP_SIZE) {
        auto *kernel = cl_find(handle, Cl::kernel);
        long most = 0;
        if (!kernel || !cl_done(cl_call<int>("clGetKernelWorkGroupInfo", kernel->handle, kernel->device, static_cast<uint>(property), sizeof most, static_cast<void *>(&most), static_cast<size_t *>(nullptr)), 5101))
            return -1;
        return std::min(most, number("MQL_OPENCL_GROUP", LONG_MAX));
    }
    void *device = cl_device(handle);
    long value = device ? cl_number(device, static_cast<uint>(property)) : -1;
    return property == CL_DEVICE_MAX_WORK_GROUP_SIZE ? std::min(value, number("MQL_OPENCL_GROUP", LONG_MAX)) : value;
}

inline bool CLGetInfoString(int handle, ENUM_OPENCL_PROPERTY_STRING property, string &text)
{
    using namespace mqlrt;
    if (property == CL_ERROR_DESCRIPTION) {
        text = "OpenCL error " + std::to_string(handle == CL_LAST_ERROR ? cl_error : handle);
        return true;
    }
    void *device = cl_device(handle);
    if (!device)
        return false;
    std::string told = cl_text("clGetDeviceInfo", device, static_cast<uint>(property));
    size_t at = setting("MQL_OPENCL_WITHOUT") == "fp64" ? told.find("cl_khr_fp64") : std::string::npos;
    text = at == std::string::npos ? told : told.erase(at, 11);
    return true;
}

inline int CLContextCreate(int wanted)
{
    using namespace mqlrt;
    last_error = 5114;
    if (cl_fails("CLContextCreate", 5103))
        return INVALID_HANDLE;
    if (cl_devices().empty()) {
        last_error = 5100;
        return INVALID_HANDLE;
    }
    for (size_t i = 0; i < cl_devices().size(); i++) {
        void *device = cl_devices()[i];
        long kind = wanted == CL_USE_CPU_ONLY ? 2 : wanted == CL_USE_GPU_ONLY || wanted == CL_USE_GPU_DOUBLE_ONLY ? 4 : 0;
        if (wanted >= 0 ? static_cast<size_t>(wanted) != i : kind && !(cl_number(device, CL_DEVICE_TYPE) & kind))
            continue;
        int status = 0;
        ClObject context{Cl::context, nullptr, device, nullptr, 0};
        context.handle = cl_call<void *>("clCreateContext", static_cast<const long *>(nullptr), 1u, &device, static_cast<void *>(nullptr), static_cast<void *>(nullptr), &status);
        if (!cl_done(status, 5103))
            return INVALID_HANDLE;
        context.queue = cl_call<void *>("clCreateCommandQueue", context.handle, device, ulong{0}, &status);
        return cl_done(status, 5104) ? cl_keep(context) : INVALID_HANDLE;
    }
    return INVALID_HANDLE;
}
inline void CLContextFree(int handle)
{
    using namespace mqlrt;
    if (auto *context = cl_find(handle, Cl::context))
        cl_call<int>("clReleaseCommandQueue", context->queue);
    cl_free(handle, Cl::context, "clReleaseContext");
}

inline int CLProgramCreate(int handle, const string &source, string &log)
{
    using namespace mqlrt;
    auto *context = cl_find(handle, Cl::context);
    if (!context || cl_fails("CLProgramCreate", 5105))
        return INVALID_HANDLE;
    int status = 0;
    std::string bytes = source.bytes();
    const char *text = bytes.c_str();
    ClObject program{Cl::program, nullptr, context->device, context->queue, 0};
    program.handle = cl_call<void *>("clCreateProgramWithSource", context->handle, 1u, &text, Size{nullptr}, &status);
    if (!cl_done(status, 5105))
        return INVALID_HANDLE;
    if (cl_done(cl_call<int>("clBuildProgram", program.handle, 1u, &context->device, "", static_cast<void *>(nullptr), static_cast<void *>(nullptr)), 5105))
        return cl_keep(program);
    size_t size = 0;
    cl_call<int>("clGetProgramBuildInfo", program.handle, program.device, 0x1183u, size_t{0}, static_cast<void *>(nullptr), &size);
    std::string said(size, 0);
    cl_call<int>("clGetProgramBuildInfo", program.handle, program.device, 0x1183u, size, static_cast<void *>(said.data()), static_cast<size_t *>(nullptr));
    log = said.c_str();
    cl_call<int>("clReleaseProgram", program.handle);
    return INVALID_HANDLE;
}
inline void CLProgramFree(int handle) { mqlrt::cl_free(handle, mqlrt::Cl::program, "clReleaseProgram"); }

inline int CLKernelCreate(int handle, const string &name)
{
    using namespace mqlrt;
    auto *program = cl_find(handle, Cl::program);
    if (!program || cl_fails("CLKernelCreate", 5107))
        return INVALID_HANDLE;
    int status = 0;
    std::string bytes = name.bytes();
    ClObject kernel{Cl::kernel, nullptr, program->device, program->queue, 0};
    kernel.handle = cl_call<void *>("clCreateKernel", program->handle, bytes.c_str(), &status);
    return cl_done(status, 5107) ? cl_keep(kernel) : INVALID_HANDLE;
}
inline void CLKernelFree(int handle) { mqlrt::cl_free(handle, mqlrt::Cl::kernel, "clReleaseKernel"); }

inline int CLBufferCreate(int handle, uint bytes, uint flags)
{
    using namespace mqlrt;
    auto *context = cl_find(handle, Cl::context);
    if (!context || cl_fails("CLBufferCreate", 5112))
        return INVALID_HANDLE;
    int status = 0;
    ClObject buffer{Cl::buffer, nullptr, context->device, context->queue, bytes};
    buffer.handle = cl_call<void *>("clCreateBuffer", context->handle, static_cast<ulong>(flags), size_t{bytes}, static_cast<void *>(nullptr), &status);
    if (!cl_done(status, 5112))
        return INVALID_HANDLE;
    std::vector<char> rubbish_bytes(bytes, static_cast<char>(0xFF));
    cl_call<int>("clEnqueueWriteBuffer", buffer.queue, buffer.handle, 1u, size_t{0}, size_t{bytes}, static_cast<const void *>(rubbish_bytes.data()), 0u, static_cast<void *>(nullptr), static_cast<void *>(nullptr));
    return cl_keep(buffer);
}
inline void CLBufferFree(int handle) { mqlrt::cl_free(handle, mqlrt::Cl::buffer, "clReleaseMemObject"); }

template <class A> uint CLBufferWrite(int handle, const A &array, uint buffer_offset = 0, uint start = 0, uint count = static_cast<uint>(WHOLE_ARRAY))
{
    using namespace mqlrt;
    auto *buffer = cl_find(handle, Cl::buffer);
    if (!buffer || cl_fails("CLBufferWrite", 5110))
        return 0;
    auto [bytes, size] = cl_bytes(array, start, count);
    int status = cl_call<int>("clEnqueueWriteBuffer", buffer->queue, buffer->handle, 1u, size_t{buffer_offset}, size, static_cast<const void *>(bytes), 0u, static_cast<void *>(nullptr), static_cast<void *>(nullptr));
    return cl_done(status, 5110) ? static_cast<uint>(size / sizeof(typename decltype(view(array))::Element)) : 0;
}
template <class A> uint CLBufferRead(int handle, A &&array, uint buffer_offset = 0, uint start = 0, uint count = static_cast<uint>(WHOLE_ARRAY))
{
    using namespace mqlrt;
    auto *buffer = cl_find(handle, Cl::buffer);
    if (!buffer || cl_fails("CLBufferRead", 5110))
        return 0;
    auto [bytes, size] = cl_bytes(array, start, count);
    int status = cl_call<int>("clEnqueueReadBuffer", buffer->queue, buffer->handle, 1u, size_t{buffer_offset}, size, static_cast<void *>(const_cast<char *>(bytes)), 0u, static_cast<void *>(nullptr), static_cast<void *>(nullptr));
    return cl_done(status, 5110) ? static_cast<uint>(size / sizeof(typename decltype(view(array))::Element)) : 0;
}

template <class T> bool CLSetKernelArg(int handle, uint index, T value)
{
    using namespace mqlrt;
    auto *kernel = cl_find(handle, Cl::kernel);
    return kernel && !cl_fails("CLSetKernelArg", 5108) && cl_done(cl_call<int>("clSetKernelArg", kernel->handle, index, sizeof value, static_cast<const void *>(&value)), 5108);
}
inline bool CLSetKernelArgMem(int handle, uint index, int buffer_handle)
{
    using namespace mqlrt;
    auto *kernel = cl_find(handle, Cl::kernel);
    auto *buffer = cl_find(buffer_handle, Cl::buffer);
    return kernel && buffer && !cl_fails("CLSetKernelArgMem", 5108) && cl_done(cl_call<int>("clSetKernelArg", kernel->handle, index, sizeof(void *), static_cast<const void *>(&buffer->handle)), 5108);
}
inline bool CLSetKernelArgMemLocal(int handle, uint index, ulong bytes)
{
    using namespace mqlrt;
    auto *kernel = cl_find(handle, Cl::kernel);
    return kernel && !cl_fails("CLSetKernelArgMemLocal", 5108) && cl_done(cl_call<int>("clSetKernelArg", kernel->handle, index, size_t{bytes}, static_cast<const void *>(nullptr)), 5108);
}

template <class A, class B, class C> bool CLExecute(int handle, uint dimensions, const A &offsets, const B &items, const C &local)
{
    using namespace mqlrt;
    auto *kernel = cl_find(handle, Cl::kernel);
    if (!kernel || cl_fails("CLExecute", 5109))
        return false;
    size_t sizes[3][3];
    for (int i = 0; i < static_cast<int>(dimensions); i++) {
        sizes[0][i] = offsets[i];
        sizes[1][i] = items[i];
        sizes[2][i] = local[i];
    }
    return cl_done(cl_call<int>("clEnqueueNDRangeKernel", kernel->queue, kernel->handle, dimensions, Size{sizes[0]}, Size{sizes[1]}, Size{sizes[2]}, 0u, static_cast<void *>(nullptr), static_cast<void *>(nullptr)), 5109);
}
