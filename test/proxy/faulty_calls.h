#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sys/uio.h>

#include "proxy/pump/socket_calls.h"

namespace vpfs::proxy {

enum class Call : std::uint8_t { recv, peek, drop, send, sendmsg, fill, drain };
inline constexpr std::array kAllCalls = {Call::recv,    Call::peek, Call::drop, Call::send,
                                         Call::sendmsg, Call::fill, Call::drain};

// The real system calls. One of them can be made to fail, and all can be limited.
class FaultyCalls final : public SocketCalls {
 public:
  // Has the `nth` call of this kind fail, counted from 1 and from now.
  void fail(Call call, std::size_t nth, int error) {
    failing_ = call;
    fail_at_ = made(call) + nth;
    error_ = error;
  }
  // Limits the bytes that one call moves into the process or a pipe, or out of them.
  void limit(std::size_t most_in, std::size_t most_out) {
    most_in_ = most_in;
    most_out_ = most_out;
  }
  // Has the kernel not say what is left in a socket.
  void hide_unread() { hides_unread_ = true; }
  [[nodiscard]] std::size_t made(Call call) const { return made_[static_cast<std::size_t>(call)]; }
  // How often bytes were received right after the sink had refused some.
  [[nodiscard]] std::size_t taken_in_while_blocked() const { return taken_in_while_blocked_; }
  // How often there was nothing to receive.
  [[nodiscard]] std::size_t found_nothing() const { return found_nothing_; }
  [[nodiscard]] bool has_failed() const { return fail_at_ != 0 && made(failing_) >= fail_at_; }

  [[nodiscard]] ssize_t recv(int socket, void* to, std::size_t size, int flags,
                             std::optional<std::size_t>& unread) override {
    if ((flags & MSG_TRUNC) != 0) {
      const ssize_t dropped =
          fails(Call::drop) ? -1 : SocketCalls::recv(socket, to, size, flags, unread);
      if (hides_unread_) unread.reset();
      return dropped;
    }
    if (fails((flags & MSG_PEEK) != 0 ? Call::peek : Call::recv)) return -1;
    if (blocked_) ++taken_in_while_blocked_;
    const ssize_t received = SocketCalls::recv(socket, to, std::min(size, most_in_), flags, unread);
    if (hides_unread_) unread.reset();
    return note_in(received);
  }
  [[nodiscard]] ssize_t send(int socket, const void* from, std::size_t size, int flags) override {
    if (fails(Call::send)) return -1;
    return note(SocketCalls::send(socket, from, std::min(size, most_out_), flags), size);
  }
  [[nodiscard]] ssize_t sendmsg(int socket, const msghdr& message, int flags) override {
    if (fails(Call::sendmsg)) return -1;
    std::vector<iovec> parts(message.msg_iov, message.msg_iov + message.msg_iovlen);
    std::size_t left = most_out_;
    std::size_t size = 0;
    for (iovec& part : parts) {
      size += part.iov_len;
      part.iov_len = std::min(part.iov_len, left);
      left -= part.iov_len;
    }
    msghdr shorter = message;
    shorter.msg_iov = parts.data();
    return note(SocketCalls::sendmsg(socket, shorter, flags), size);
  }
  [[nodiscard]] ssize_t fill(net::SplicePipe& pipe, int socket, std::size_t size) override {
    if (fails(Call::fill)) return -1;
    if (blocked_) ++taken_in_while_blocked_;
    return note_in(SocketCalls::fill(pipe, socket, std::min(size, most_in_)));
  }
  [[nodiscard]] ssize_t drain(net::SplicePipe& pipe, int socket) override {
    if (fails(Call::drain)) return -1;
    const std::size_t size = pipe.size();
    return note(SocketCalls::drain(pipe, socket), size);
  }

 private:
  [[nodiscard]] bool fails(Call call) {
    if (++made_[static_cast<std::size_t>(call)] != fail_at_ || call != failing_) return false;
    errno = error_;
    return true;
  }
  [[nodiscard]] ssize_t note_in(ssize_t moved) {
    if (moved < 0 && errno == EAGAIN) ++found_nothing_;
    return moved;
  }
  // An output call moved `moved` of `size` bytes.
  [[nodiscard]] ssize_t note(ssize_t moved, std::size_t size) {
    blocked_ = moved < static_cast<ssize_t>(size);
    return moved;
  }

  std::array<std::size_t, kAllCalls.size()> made_ = {};
  Call failing_ = Call::recv;
  std::size_t fail_at_ = 0;
  int error_ = 0;
  bool blocked_ = false;
  std::size_t taken_in_while_blocked_ = 0;
  std::size_t found_nothing_ = 0;
  bool hides_unread_ = false;
  std::size_t most_in_ = SIZE_MAX;
  std::size_t most_out_ = SIZE_MAX;
};

}  // namespace vpfs::proxy
