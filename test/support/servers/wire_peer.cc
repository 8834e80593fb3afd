#include "test/support/servers/wire_peer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

void expect(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool wait_for(int socket, short events, milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd one = {.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

// Sends without blocking and returns the number of bytes; -1 when the connection is gone.
ssize_t send_some(int socket, std::span<const std::byte> bytes) {
  const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

}  // namespace

Buffer WireMessage::bytes() const {
  const auto head = encode(header);
  Buffer whole(head.begin(), head.end());
  whole.insert(whole.end(), payload.begin(), payload.end());
  return whole;
}

WirePeer WirePeer::connect(std::uint16_t port, int receive_buffer) {
  WirePeer peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  expect(peer.socket_ >= 0, "socket");
  const int on = 1;
  ::setsockopt(peer.socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (receive_buffer > 0) {
    ::setsockopt(peer.socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  const sockaddr_in address = loopback(port);
  expect(::connect(peer.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
         "connect");
  return peer;
}

WirePeer::WirePeer(WirePeer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), unsent_(std::move(other.unsent_)) {}

WirePeer& WirePeer::operator=(WirePeer&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::exchange(other.socket_, -1);
    unsent_ = std::move(other.unsent_);
  }
  return *this;
}

bool WirePeer::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send_some(socket_, bytes);
    if (sent < 0) return false;
    if (sent == 0 && !wait_for(socket_, POLLOUT, kPatience)) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool WirePeer::send_fragments(std::span<const std::byte> bytes, std::mt19937_64& random) {
  // Pieces end within headers, or span many messages.
  while (!bytes.empty()) {
    const std::size_t most = std::array<std::size_t, 4>{3, 40, 5000, 400'000}[random() % 4];
    const std::size_t size = std::min<std::size_t>(bytes.size(), 1 + random() % most);
    if (!send(bytes.first(size))) return false;
    bytes = bytes.subspan(size);
  }
  return true;
}

std::size_t WirePeer::flood(std::span<const std::byte> message, std::size_t most,
                            milliseconds quiet) {
  for (std::size_t count = 0; count < most; ++count) {
    std::span<const std::byte> rest = message;
    while (!rest.empty()) {
      const ssize_t sent = send_some(socket_, rest);
      if (sent < 0) return count;
      rest = rest.subspan(static_cast<std::size_t>(sent));
      if (sent == 0 && !wait_for(socket_, POLLOUT, quiet)) {
        if (rest.size() == message.size()) return count;
        unsent_.assign(rest.begin(), rest.end());
        return count + 1;
      }
    }
  }
  return most;
}

bool WirePeer::finish_send() {
  return send(std::exchange(unsent_, {}));
}

Buffer WirePeer::receive_bytes(std::size_t size) {
  Buffer bytes(size);
  std::size_t done = 0;
  while (done < size && wait_for(socket_, POLLIN, kPatience)) {
    const ssize_t got = ::recv(socket_, bytes.data() + done, size - done, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::optional<WireMessage> WirePeer::receive(milliseconds patience) {
  if (!readable(patience)) return std::nullopt;
  const Buffer head = receive_bytes(orangefs::kBmiHeaderSize);
  const auto header = orangefs::decode_bmi_header(head);
  if (!header) return std::nullopt;
  WireMessage message = {.header = *header, .payload = receive_bytes(header->payload_size)};
  if (message.payload.size() != header->payload_size) return std::nullopt;
  return message;
}

bool WirePeer::readable(milliseconds patience) const {
  return wait_for(socket_, POLLIN, patience);
}

bool WirePeer::closed_by_peer(milliseconds patience) {
  Buffer dropped(64 * 1024);
  const auto deadline = Clock::now() + patience;
  while (Clock::now() < deadline) {
    if (!wait_for(socket_, POLLIN, std::chrono::ceil<milliseconds>(deadline - Clock::now()))) break;
    const ssize_t got = ::recv(socket_, dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
  return false;
}

void WirePeer::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

void WirePeer::reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

std::optional<std::size_t> first_readable(std::span<WirePeer> peers, milliseconds patience) {
  std::vector<pollfd> all;
  for (const WirePeer& peer : peers) {
    all.push_back({.fd = peer.socket(), .events = POLLIN, .revents = 0});
  }
  if (::poll(all.data(), all.size(), static_cast<int>(patience.count())) <= 0) return std::nullopt;
  const auto found = std::ranges::find_if(all, [](const pollfd& one) { return one.revents != 0; });
  return static_cast<std::size_t>(found - all.begin());
}

FakeDataServer::FakeDataServer(std::uint16_t port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  expect(socket_ >= 0, "socket");
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(port);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  expect(::bind(socket_, generic, sizeof address) == 0, "bind");
  expect(::listen(socket_, 4096) == 0, "listen");
  socklen_t size = sizeof address;
  expect(::getsockname(socket_, generic, &size) == 0, "getsockname");
  port_ = ntohs(address.sin_port);
}

FakeDataServer::~FakeDataServer() {
  ::close(socket_);
}

WirePeer FakeDataServer::accept(milliseconds patience) {
  WirePeer peer;
  // At its start a proxy probes the server with a connection that it closes at once; skip it.
  do {
    if (!wait_for(socket_, POLLIN, patience)) return {};
    peer = WirePeer(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
  } while (wait_for(peer.socket(), POLLRDHUP, milliseconds(0)));
  const int on = 1;
  ::setsockopt(peer.socket(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return peer;
}

}  // namespace vpfs::test
