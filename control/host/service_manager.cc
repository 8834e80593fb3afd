#include "control/host/service_manager.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/signal_block.h"

namespace vpfs::control {
namespace {

constexpr int kFirstKept = 3;  // SD_LISTEN_FDS_START
constexpr int kMostKept = 1024;
// For all listeners together, and for the word that the program is ready.
constexpr int kManagerWaits = 500;
constexpr int kBetweenWords = 10;  // milliseconds

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

using KeptCopies = std::vector<std::pair<std::string, net::Descriptor>>;

// Sends messages to the manager's socket, whose queue is short.
class ManagerSocket {
 public:
  explicit ManagerSocket(std::string path)
      : path_(std::move(path)), socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

  // False: it takes no more.
  [[nodiscard]] bool try_to_tell(std::string_view text, std::span<const int> descriptors) const;
  // Tries again after each of the waits that are left.
  [[nodiscard]] bool tell(std::string_view text, std::span<const int> descriptors, int& waits,
                          const std::stop_token& stop) const;
  [[nodiscard]] bool store(const KeptCopies& copies, const std::stop_token& stop) const;
  void tell_all(const KeptCopies& copies, const std::stop_token& stop) const;

 private:
  std::string path_;
  net::Descriptor socket_;
};

bool ManagerSocket::try_to_tell(std::string_view text, std::span<const int> descriptors) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path_.size() < 2 || path_.size() >= sizeof address.sun_path) return true;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (path_.front() == '@') address.sun_path[0] = '\0';  // of the abstract name space
  iovec part = {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
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

bool ManagerSocket::store(const KeptCopies& copies, const std::stop_token& stop) const {
  int waits = kManagerWaits;
  return std::ranges::all_of(copies, [&](const auto& each) {
    const auto& [name, descriptor] = each;
    const int number = descriptor.get();
    return tell(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", name), {}, waits, stop) &&
           tell(fmt::format("FDSTORE=1\nFDNAME={}\n", name), std::span(&number, 1), waits, stop);
  });
}

void ManagerSocket::tell_all(const KeptCopies& copies, const std::stop_token& stop) const {
  if (!store(copies, stop)) {
    spdlog::warn("the service manager at {} does not take the listeners: they end with a crash",
                 path_);
  }
  const std::string ready = fmt::format("READY=1\nMAINPID={}\n", ::getpid());
  int waits = kManagerWaits;
  if (!tell(ready, {}, waits, stop)) {
    spdlog::warn("the service manager at {} does not listen", path_);
  }
}

}  // namespace

std::jthread tell_manager(const std::vector<std::pair<std::string, int>>& descriptors) {
  std::string path(environment("NOTIFY_SOCKET"));
  if (path.empty()) return {};
  ManagerSocket manager(std::move(path));
  // The process before may end soon, and then it must not be the main one.
  (void)manager.try_to_tell(fmt::format("MAINPID={}\n", ::getpid()), {});
  KeptCopies copies;
  for (const auto& [name, descriptor] : descriptors) {
    copies.emplace_back(name, net::Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
  }
  const SignalBlock blocked;
  return std::jthread([manager = std::move(manager), copies = std::move(copies)](
                          const std::stop_token& stop) { manager.tell_all(copies, stop); });
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
