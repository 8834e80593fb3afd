#include "net/socket_options.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vpfs::net {
namespace {
std::error_code last_error() {
  return {errno, std::system_category()};
}
}  // namespace

std::error_code prepare_stream(int socket) {
  const int on = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return last_error();
  // Urgent data stay in line. Their mark stops a splice until more comes: a client that sends some
  // waits for itself.
  if (setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) != 0) return last_error();
  const int flags = fcntl(socket, F_GETFL);
  if (flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0) return last_error();
  return {};
}

void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 20);
  set(IPPROTO_TCP, TCP_KEEPCNT, 6);
}

void bound_delivery(int socket, Duration within) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(within).count();
  // Zero is the system's own bound, a quarter of an hour.
  const int value = static_cast<int>(std::clamp<decltype(milliseconds)>(milliseconds, 1, 1 << 30));
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof value);
}

void bound_unsent(int socket, std::uint32_t bytes) {
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

bool has_hung_up(int socket) {
  pollfd state = {.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&state, 1, 0) > 0;
}

Result<Endpoint> original_destination(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  const bool is_v4 = ::getsockopt(socket, IPPROTO_IP, SO_ORIGINAL_DST, &address, &size) == 0;
  if (!is_v4) {
    size = sizeof address;
    if (::getsockopt(socket, IPPROTO_IPV6, IP6T_SO_ORIGINAL_DST, &address, &size) != 0) {
      const std::error_code error = last_error();
      return fail("the connection was not redirected: " + error.message(), error);
    }
  }
  // The kernel does not say how long the address is.
  Endpoint endpoint;
  endpoint.resize(is_v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  std::memcpy(endpoint.data(), &address, endpoint.size());
  return endpoint;
}

void ignore_broken_pipes() {
  (void)std::signal(SIGPIPE, SIG_IGN);
}

unsigned long raise_open_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return limit.rlim_cur;
}

}  // namespace vpfs::net
