// Native sockets over those of the system, with the oddities that the reference and the book tell of:
// an empty healthy socket claims 1 readable byte, a timed-out read gives -1, a send may take a part.
//   MQL_ALLOW   addresses of the terminal's list, separated by commas
//   MQL_FUZZ=1  short promises, short reads and sends, sockets that are not writable for a moment (MQL_SEED)
//   MQL_READ    whole: SocketRead waits for all that it was asked for and replaces the array;
//               first: it returns what is there and appends. The reference allows either reading.
#pragma once
#include "program.hpp"
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { SOCKET_DEFAULT = 0 };

namespace mqlrt
{
struct Socket
{
    int descriptor = -1;
    uint send_ms = 0; // 0 is for ever
};
inline std::map<int, Socket> sockets;
inline int next_socket = 1;

inline Socket *find_socket(int handle)
{
    if (in_tester() || in_indicator()) {
        last_error = 4014;
        return nullptr;
    }
    auto found = sockets.find(handle);
    if (found == sockets.end()) {
        last_error = 5270;
        return nullptr;
    }
    return &found->second;
}
inline int broken(Socket &socket)
{
    if (socket.descriptor >= 0)
        ::close(socket.descriptor);
    socket.descriptor = -1;
    last_error = 5273;
    return -1;
}
inline bool wait_for(const Socket &socket, short what, long milliseconds)
{
    pollfd item{socket.descriptor, what, 0};
    return ::poll(&item, 1, static_cast<int>(milliseconds)) > 0;
}
inline bool fuzz() { return number("MQL_FUZZ", 0) == 1; }
inline size_t some_of(size_t count) { return fuzz() && count > 1 ? 1 + rubbish()() % count : count; }
} // namespace mqlrt

inline int SocketCreate(uint = SOCKET_DEFAULT)
{
    using namespace mqlrt;
    if (in_tester() || in_indicator() || sockets.size() >= 128) {
        last_error = sockets.size() >= 128 ? 5271 : 4014;
        return INVALID_HANDLE;
    }
    sockets[next_socket];
    return next_socket++;
}

inline bool SocketClose(int handle)
{
    auto *socket = mqlrt::find_socket(handle);
    if (!socket)
        return false;
    if (socket->descriptor >= 0)
        ::close(socket->descriptor);
    mqlrt::sockets.erase(handle);
    return true;
}

inline bool SocketConnect(int handle, const string &server, uint port, uint timeout_ms)
{
    using namespace mqlrt;
    auto *socket = find_socket(handle);
    if (!socket)
        return false;
    if (("," + setting("MQL_ALLOW") + ",").find("," + server.bytes() + ",") == std::string::npos) {
        last_error = static_cast<int>(number("MQL_FORBIDDEN_CODE", 4014)); // the reference does not say which
        return false;
    }
    last_error = 5272;
    addrinfo hints{}, *address = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(server.bytes().c_str(), std::to_string(port).c_str(), &hints, &address))
        return false;
    socket->descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    int flags = ::fcntl(socket->descriptor, F_GETFL), failure = 0, one = 1;
    socklen_t size = sizeof failure;
    ::fcntl(socket->descriptor, F_SETFL, flags | O_NONBLOCK);
    ::setsockopt(socket->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    bool done = ::connect(socket->descriptor, address->ai_addr, address->ai_addrlen) == 0 || (errno == EINPROGRESS && wait_for(*socket, POLLOUT, timeout_ms));
    ::freeaddrinfo(address);
    ::getsockopt(socket->descriptor, SOL_SOCKET, SO_ERROR, &failure, &size);
    ::fcntl(socket->descriptor, F_SETFL, flags);
    if (!done || failure) {
        broken(*socket);
        last_error = 5272;
        return false;
    }
    last_error = 0;
    return true;
}

inline bool SocketIsConnected(int handle)
{
    auto *socket = mqlrt::find_socket(handle);
    return socket && socket->descriptor >= 0;
}

inline bool SocketTimeouts(int handle, uint timeout_send_ms, uint)
{
    auto *socket = mqlrt::find_socket(handle);
    if (!socket)
        return false;
    socket->send_ms = timeout_send_ms;
    return true;
}

inline uint SocketIsReadable(int handle)
{
    using namespace mqlrt;
    auto *socket = find_socket(handle);
    if (!socket || socket->descriptor < 0)
        return 0;
    int waiting = 0;
    bool event = wait_for(*socket, POLLIN, 0);
    ::ioctl(socket->descriptor, FIONREAD, &waiting);
    if (event && waiting == 0) {
        broken(*socket);
        return 0;
    }
    return waiting == 0 ? 1 : static_cast<uint>(some_of(static_cast<size_t>(waiting)));
}

inline bool SocketIsWritable(int handle)
{
    using namespace mqlrt;
    auto *socket = find_socket(handle);
    if (!socket || socket->descriptor < 0 || (fuzz() && rubbish()() % 8 == 0))
        return false;
    return wait_for(*socket, POLLOUT, 0);
}

inline int SocketRead(int handle, mqlrt::Ref<uchar> buffer, uint most, uint timeout_ms)
{
    using namespace mqlrt;
    auto *socket = find_socket(handle);
    if (!socket)
        return -1;
    if (socket->descriptor < 0 || most < 1 || most > INT_MAX)
        return broken(*socket);
    bool whole = setting("MQL_READ", "whole") == "whole";
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms ? timeout_ms : 120000);
    std::string got;
    while (got.size() < most) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        if (left <= 0 || !wait_for(*socket, POLLIN, left))
            return -1; // what was read so far is lost: the hard case
        std::string piece(some_of(most - got.size()), 0);
        ssize_t count = ::recv(socket->descriptor, piece.data(), piece.size(), 0);
        if (count <= 0)
            return broken(*socket);
        got.append(piece, 0, static_cast<size_t>(count));
        if (!whole)
            break;
    }
    int at = whole ? 0 : buffer.size();
    resize(*buffer.dynamic, at + static_cast<int>(got.size()));
    std::memcpy(buffer.data() + at, got.data(), got.size());
    return static_cast<int>(got.size());
}

inline int SocketSend(int handle, const mqlrt::View<uchar> &buffer, uint length)
{
    using namespace mqlrt;
    auto *socket = find_socket(handle);
    if (!socket)
        return -1;
    if (socket->descriptor < 0)
        return broken(*socket);
    if (static_cast<long>(length) > buffer.size())
        critical("SocketSend: the length goes past the array");
    timeval limit{socket->send_ms / 1000, static_cast<suseconds_t>(socket->send_ms % 1000 * 1000)};
    ::setsockopt(socket->descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ssize_t sent = ::send(socket->descriptor, buffer.data(), some_of(length), MSG_NOSIGNAL);
    return sent < 0 ? broken(*socket) : static_cast<int>(sent);
}
