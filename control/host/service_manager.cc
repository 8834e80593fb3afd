#include "control/host/service_manager.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace vpfs::control {
namespace {

constexpr int kFirstKept = 3;  // SD_LISTEN_FDS_START
constexpr int kMostKept = 1024;

std::string_view environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

int number_in(const char* name) {
  const std::string_view text = environment(name);
  int number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size() ? number : 0;
}

void notify(std::string_view text, std::span<const int> descriptors) {
  const std::string_view path = environment("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // of the abstract name space
  const net::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  iovec part = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(first), descriptors.data(), sizeof(int));
  }
  // The kernel queues few messages for a manager that is busy.
  const timeval patience = {.tv_sec = 5, .tv_usec = 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (!socket || ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) < 0) {
    spdlog::warn("the service manager at {} does not listen", path);
  }
}

}  // namespace

void tell_manager_ready() {
  notify(fmt::format("READY=1\nMAINPID={}\n", ::getpid()), {});
}

void store_at_manager(const std::vector<std::pair<std::string, int>>& descriptors) {
  for (const auto& [name, descriptor] : descriptors) {
    notify(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", name), {});
    notify(fmt::format("FDSTORE=1\nFDNAME={}\n", name), std::span(&descriptor, 1));
  }
}

net::Inherited kept_by_manager() {
  net::Inherited kept;
  const int count = number_in("LISTEN_FDS");
  const bool are_ours = number_in("LISTEN_PID") == ::getpid() && count > 0 && count <= kMostKept;
  std::string_view names = environment("LISTEN_FDNAMES");
  for (int i = 0; are_ours && i < count; ++i) {
    const std::size_t end = std::min(names.find(':'), names.size());
    const int descriptor = kFirstKept + i;
    (void)::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    kept.add(std::string(names.substr(0, end)), net::Descriptor(descriptor));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  for (const char* each : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}) {
    (void)::unsetenv(each);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  }
  return kept;
}

}  // namespace vpfs::control
