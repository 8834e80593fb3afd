#include "bench/data_path/relay/model.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/units.h"
#include "net/congestion/congestion_control.h"
#include "net/socket_options.h"
#include "protocols/orangefs/bmi_header.h"

namespace vpfs::bench {
namespace {

constexpr std::size_t kRequestSize = 300;
constexpr std::size_t kAnswerSize = 40;
constexpr std::size_t kDataMessage = 256 * kKiB;
constexpr std::size_t kScratch = 512 * kKiB;
constexpr std::size_t kUnitsPerSend = 16;

void append_message(std::vector<std::byte>& out, std::size_t payload) {
  const auto header = orangefs::encode(orangefs::BmiHeader{
      .mode = orangefs::expected_mode(payload), .tag = orangefs::Tag{1}, .payload_size = payload});
  out.insert(out.end(), header.begin(), header.end());
  out.resize(out.size() + payload);
}

void append_data(std::vector<std::byte>& out, std::size_t size) {
  for (; size > 0; size -= std::min(size, kDataMessage)) {
    append_message(out, std::min(size, kDataMessage));
  }
}

void require(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

void prepare(int socket, const std::string& congestion_control) {
  std::error_code error = net::prepare_stream(socket);
  if (!error && !congestion_control.empty()) {
    error = net::set_congestion_control(socket, congestion_control);
  }
  if (error) throw std::system_error(error, congestion_control);
}

}  // namespace

std::vector<std::byte> request_of(const Workload& workload) {
  std::vector<std::byte> out;
  append_message(out, kRequestSize - orangefs::kBmiHeaderSize);
  if (workload.write) append_data(out, workload.size);
  return out;
}

std::vector<std::byte> answer_of(const Workload& workload) {
  std::vector<std::byte> out;
  append_message(out, kAnswerSize - orangefs::kBmiHeaderSize);
  if (!workload.write) append_data(out, workload.size);
  return out;
}

std::pair<int, int> connected_sockets(const std::string& congestion_control) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(listener >= 0, "socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  require(::bind(listener, generic, length) == 0, "bind");
  require(::listen(listener, 1) == 0, "listen");
  require(::getsockname(listener, generic, &length) == 0, "getsockname");
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(near >= 0 && ::connect(near, generic, length) == 0, "connect");
  const int far = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  require(far >= 0, "accept");
  ::close(listener);
  prepare(near, congestion_control);
  prepare(far, congestion_control);
  return {near, far};
}

Peer::Peer(const std::vector<int>& sockets, std::vector<std::byte> sent_unit,
           std::size_t received_unit_size, std::size_t initial)
    : unit_(std::move(sent_unit)), received_unit_size_(received_unit_size), scratch_(kScratch) {
  for (const int socket : sockets) {
    connections_.push_back(PeerConnection{.socket = socket, .units_due = initial});
  }
}

bool Peer::receive(PeerConnection& connection) {
  const ssize_t got = ::recv(connection.socket, scratch_.data(), scratch_.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  connection.received += static_cast<std::size_t>(got);
  const std::size_t units = connection.received / received_unit_size_;
  connection.received -= units * received_unit_size_;
  connection.units_due += units;
  units_received_.fetch_add(units, std::memory_order_relaxed);
  return true;
}

bool Peer::send(PeerConnection& connection) {
  while (connection.units_due > 0) {
    std::array<iovec, kUnitsPerSend> parts = {};
    const std::size_t count = std::min(connection.units_due, kUnitsPerSend);
    for (std::size_t i = 0; i < count; ++i) parts[i] = {unit_.data(), unit_.size()};
    parts[0] = {unit_.data() + connection.sent, unit_.size() - connection.sent};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(connection.socket, &message, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += static_cast<std::size_t>(sent);
    connection.units_due -= connection.sent / unit_.size();
    connection.sent %= unit_.size();
  }
  return true;
}

void Peer::run(const std::atomic<bool>& stop) {
  const int poll = ::epoll_create1(EPOLL_CLOEXEC);
  require(poll >= 0, "epoll_create1");
  const auto watch = [&](PeerConnection& connection, int operation) {
    epoll_event event = {};
    event.events = connection.units_due > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.ptr = &connection;
    require(::epoll_ctl(poll, operation, connection.socket, &event) == 0, "epoll_ctl");
  };
  for (PeerConnection& connection : connections_) watch(connection, EPOLL_CTL_ADD);
  std::array<epoll_event, 64> events = {};
  bool alive = true;
  while (alive && !stop.load(std::memory_order_relaxed)) {
    const int count = ::epoll_wait(poll, events.data(), static_cast<int>(events.size()), 20);
    for (std::size_t i = 0; alive && std::cmp_less(i, count); ++i) {
      auto& connection = *static_cast<PeerConnection*>(events[i].data.ptr);
      const bool waited_to_send = connection.units_due > 0;
      if ((events[i].events & ~EPOLLOUT) != 0) alive = receive(connection);
      alive = alive && send(connection);
      if (alive && waited_to_send != (connection.units_due > 0)) watch(connection, EPOLL_CTL_MOD);
    }
  }
  ::close(poll);
}

}  // namespace vpfs::bench
