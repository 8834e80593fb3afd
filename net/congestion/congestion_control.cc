#include "net/congestion/congestion_control.h"

#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/result.h"
#include "net/connecting.h"
#include "net/endpoint.h"

namespace vpfs::net {

std::error_code set_congestion_control(int socket, const std::string& name) {
  if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size())) != 0) {
    return {errno, std::system_category()};
  }
  return {};
}

std::optional<std::string> congestion_control_problem(const std::string& name) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return fmt::format("cannot be tried: {}", std::generic_category().message(errno));
  const std::error_code error = set_congestion_control(socket, name);
  ::close(socket);
  if (!error) return std::nullopt;
  std::string known;
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::getline(file, known);
  if (error.value() == EPERM) {
    return fmt::format("'{}' is not allowed to this user (the kernel has: {})", name, known);
  }
  return fmt::format("'{}' is not known to this kernel (it has: {})", name, known);
}

void choose_local_congestion(int socket, const std::string& name) {
  const Result<Endpoint> near_end = local_endpoint(socket);
  const Result<Endpoint> far_end = remote_endpoint(socket);
  if (!near_end || !far_end) return;
  // A redirected client's own address is not that which it has reached.
  const asio::ip::address here = unmapped(*near_end).address();
  const asio::ip::address there = unmapped(*far_end).address();
  if (here != there && !here.is_loopback() && !there.is_loopback()) return;
  if (const std::error_code problem = set_congestion_control(socket, name)) {
    spdlog::debug("congestion control {}: {}", name, problem.message());
  }
}

}  // namespace vpfs::net
