#include "bench/control/control_cycles/sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <system_error>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace vpfs::bench {
namespace {

constexpr int kBacklog = 4096;

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  // The sockets API takes all address types through this one.
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address native(const control::PortAddress& address) {
  Address made;
  if (address.is_unix()) {
    sockaddr_un path = {};
    path.sun_family = AF_UNIX;
    if (address.path.size() >= sizeof path.sun_path) throw std::runtime_error("a path too long");
    std::ranges::copy(address.path, path.sun_path);
    std::memcpy(&made.storage, &path, sizeof path);
    made.size = sizeof path;
  } else {
    sockaddr_in host = {};
    host.sin_family = AF_INET;
    host.sin_port = htons(address.port);
    if (::inet_pton(AF_INET, address.host.c_str(), &host.sin_addr) != 1) {
      throw std::runtime_error(address.host + " is not an address");
    }
    std::memcpy(&made.storage, &host, sizeof host);
    made.size = sizeof host;
  }
  return made;
}

net::Descriptor make_socket(const control::PortAddress& address) {
  net::Descriptor made(
      ::socket(address.is_unix() ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made) fail_with_errno("socket");
  return made;
}

void send_at_once(const net::Descriptor& socket) {
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not of UNIX
}

}  // namespace

void fail_with_errno(std::string_view what) {
  throw std::system_error(errno, std::generic_category(), std::string(what));
}

void raise_file_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) fail_with_errno("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) fail_with_errno("setrlimit");
}

net::Descriptor listen_at(control::PortAddress& address) {
  net::Descriptor listener = make_socket(address);
  Address at = native(address);
  if (::bind(listener.get(), at.get(), at.size) != 0) fail_with_errno("bind");
  if (::listen(listener.get(), kBacklog) != 0) fail_with_errno("listen");
  if (!address.is_unix()) {
    sockaddr_in bound = {};
    at.size = sizeof at.storage;
    if (::getsockname(listener.get(), at.get(), &at.size) != 0) fail_with_errno("getsockname");
    std::memcpy(&bound, &at.storage, sizeof bound);
    address.port = ntohs(bound.sin_port);
  }
  return listener;
}

net::Descriptor accept_from(const net::Descriptor& listener) {
  net::Descriptor made(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!made) fail_with_errno("accept");
  send_at_once(made);
  return made;
}

net::Descriptor connect_to(const control::PortAddress& address) {
  net::Descriptor made = make_socket(address);
  Address to = native(address);
  if (::connect(made.get(), to.get(), to.size) != 0) {
    fail_with_errno(control::to_string(address));
  }
  if (::fcntl(made.get(), F_SETFL, O_NONBLOCK) != 0) fail_with_errno("fcntl");
  send_at_once(made);
  return made;
}

Poll::Poll() : poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!poll_) fail_with_errno("epoll_create1");
}

void Poll::watch(const net::Descriptor& descriptor, std::size_t number, std::uint32_t events) {
  epoll_event event = {};
  event.events = events | EPOLLET;
  event.data.u64 = number;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor.get(), &event) != 0) {
    fail_with_errno("epoll_ctl");
  }
}

std::span<const epoll_event> Poll::ask(int patience) {
  for (;;) {
    const int ready = ::epoll_wait(poll_.get(), events_, kBatch, patience);
    if (ready >= 0) return std::span(events_).first(static_cast<std::size_t>(ready));
    if (errno != EINTR) fail_with_errno("epoll_wait");
  }
}

std::chrono::nanoseconds cpu_time(pid_t process) {
  clockid_t clock = 0;
  timespec used = {};
  if (const int error = ::clock_getcpuclockid(process, &clock); error != 0) {
    throw std::system_error(error, std::generic_category(), "clock_getcpuclockid");
  }
  if (::clock_gettime(clock, &used) != 0) fail_with_errno("clock_gettime");
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace vpfs::bench
