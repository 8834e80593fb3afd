#include "test/support/control/raw_peer.h"

#include <cerrno>
#include <thread>
#include <utility>

#include <asio/local/stream_protocol.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace vpfs::test {
namespace {

int connect_to(const sockaddr* address, socklen_t size) {
  const int socket = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket >= 0 && ::connect(socket, address, size) == 0) return socket;
  if (socket >= 0) ::close(socket);
  return -1;
}

}  // namespace

RawPeer::RawPeer(const std::string& socket_path) {
  asio::local::stream_protocol::endpoint endpoint(socket_path);
  socket_ = connect_to(endpoint.data(), static_cast<socklen_t>(endpoint.size()));
}

RawPeer::RawPeer(const net::Endpoint& tcp)
    : socket_(connect_to(tcp.data(), static_cast<socklen_t>(tcp.size()))) {}

RawPeer RawPeer::adopt(int socket) {
  RawPeer peer;
  peer.socket_ = socket;
  return peer;
}

RawPeer::~RawPeer() {
  if (socket_ >= 0) ::close(socket_);
}

RawPeer::RawPeer(RawPeer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), reader_(std::move(other.reader_)) {}

RawPeer& RawPeer::operator=(RawPeer&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(reader_, other.reader_);
  return *this;
}

bool RawPeer::wait_for(short events, std::chrono::milliseconds patience) const {
  pollfd wait = {.fd = socket_, .events = events, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

bool RawPeer::send(std::string_view bytes, std::chrono::milliseconds patience) {
  while (!bytes.empty()) {
    if (!wait_for(POLLOUT, patience)) return false;
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawPeer::send(const control::Envelope& message) {
  return send(std::string_view(frame_of(message)));
}

std::optional<control::Envelope> RawPeer::receive(std::chrono::milliseconds patience) {
  for (;;) {
    const auto frame = reader_.next();
    if (!frame) return std::nullopt;
    if (*frame) {
      control::Envelope message;
      if (!control::decode(**frame, message)) return std::nullopt;
      return message;
    }
    if (!wait_for(POLLIN, patience)) return std::nullopt;
    const auto room = reader_.room();
    const ssize_t size = ::recv(socket_, room.data(), room.size(), 0);
    if (size <= 0) return std::nullopt;
    reader_.received(static_cast<std::size_t>(size));
  }
}

bool RawPeer::closed_within(std::chrono::milliseconds patience) {
  char dropped[4096];
  while (wait_for(POLLIN, patience)) {
    if (::recv(socket_, dropped, sizeof dropped, 0) <= 0) return true;
  }
  return false;
}

std::optional<control::Envelope> RawPeer::greet(std::uint32_t version, std::uint32_t least) {
  control::Envelope hello;
  hello.set_id(1);
  hello.mutable_hello()->set_version(version);
  hello.mutable_hello()->set_least(least);
  hello.mutable_hello()->set_role(control::Hello::ADMINISTRATOR);
  if (!send(hello)) return std::nullopt;
  return receive();
}

void RawPeer::end_output() {
  ::shutdown(socket_, SHUT_WR);
}

void RawPeer::set_receive_buffer(int bytes) {
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

std::string length_field(std::uint32_t length) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift);
  return bytes;
}

std::string frame_of(const control::Envelope& message) {
  std::string bytes;
  (void)control::append_frame(message, control::kMostAnswer, bytes);
  return bytes;
}

bool run_as(std::uint32_t uid, std::uint32_t gid, const std::function<void()>& work) {
  bool done = false;
  std::thread([&] {
    // The calls of the C library would change all threads.
    if (::syscall(SYS_setgroups, 0, nullptr) != 0 || ::syscall(SYS_setresgid, gid, gid, gid) != 0 ||
        ::syscall(SYS_setresuid, uid, uid, uid) != 0) {
      return;
    }
    work();
    done = true;
  }).join();
  return done;
}

}  // namespace vpfs::test
