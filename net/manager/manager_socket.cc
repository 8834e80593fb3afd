#include "net/manager/manager_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

namespace vpfs::net {
namespace {

constexpr int kBetweenWords = 10;  // milliseconds
// As systemd has its largest times. More would overflow.
constexpr std::int64_t kLongestPeriod = 1'000'000'000'000;  // microseconds

std::string_view variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

ManagerSocket::ManagerSocket(std::string path)
    : path_(std::move(path)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

std::optional<ManagerSocket> ManagerSocket::of_environment() {
  std::string path(variable("NOTIFY_SOCKET"));
  if (path.size() < 2 || path.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  return ManagerSocket(std::move(path));
}

bool ManagerSocket::try_to_tell(std::string_view text, std::span<const int> descriptors) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (path_.front() == '@') address.sun_path[0] = '\0';  // of the abstract name space
  iovec part = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control = {};
  if (!descriptors.empty()) {
    VPFS_ASSERT(descriptors.size() <= kMostDescriptors);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

bool ManagerSocket::tell(std::string_view text, std::span<const int> descriptors, int& waits,
                         const std::stop_token& stop) const {
  while (!try_to_tell(text, descriptors)) {
    const bool is_busy = errno == EAGAIN || errno == EINTR;
    if (!is_busy || stop.stop_requested() || waits-- <= 0) return false;
    (void)::poll(nullptr, 0, kBetweenWords);
  }
  return true;
}

std::size_t most_stored() {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const auto most = number_of(variable("FDSTORE"));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(most.value_or(0), 0, kMost));
}

std::string ready_words() {
  return fmt::format("READY=1\nMAINPID={}\n", ::getpid());
}

void tell_main_process(int pid) {
  const auto manager = ManagerSocket::of_environment();
  if (manager) (void)manager->try_to_tell(fmt::format("MAINPID={}\n", pid), {});
}

std::optional<Duration> watchdog_period(bool takes_over) {
  const auto period = number_of(variable("WATCHDOG_USEC"));
  if (!period || *period <= 0 || *period > kLongestPeriod) return std::nullopt;
  const std::string_view process = variable("WATCHDOG_PID");
  const bool is_asked = takes_over || process.empty() || number_of(process) == ::getpid();
  if (!is_asked) return std::nullopt;
  return std::chrono::microseconds(*period);
}

}  // namespace vpfs::net
