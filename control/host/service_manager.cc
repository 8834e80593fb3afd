#include "control/host/service_manager.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <span>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/signal_block.h"
#include "net/manager/manager_socket.h"

namespace vpfs::control {
namespace {

constexpr int kFirstKept = 3;  // SD_LISTEN_FDS_START
constexpr int kMostKept = 1 << 20;
// For all listeners together, and for the word that the program is ready.
constexpr int kManagerWaits = 500;

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

bool store(const net::ManagerSocket& manager, const KeptCopies& copies,
           const std::stop_token& stop) {
  int waits = kManagerWaits;
  return std::ranges::all_of(copies, [&](const auto& each) {
    const auto& [name, descriptor] = each;
    const int number = descriptor.get();
    return manager.tell(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", name), {}, waits, stop) &&
           manager.tell(fmt::format("FDSTORE=1\nFDNAME={}\n", name), std::span(&number, 1), waits,
                        stop);
  });
}

void tell_all(const net::ManagerSocket& manager, const KeptCopies& copies,
              const std::stop_token& stop) {
  if (!store(manager, copies, stop)) {
    spdlog::warn("the service manager at {} does not take the listeners: they end with a crash",
                 manager.path());
  }
  int waits = kManagerWaits;
  if (!manager.tell(net::ready_words(), {}, waits, stop)) {
    spdlog::warn("the service manager at {} does not listen", manager.path());
  }
}

}  // namespace

std::jthread tell_manager(const std::vector<std::pair<std::string, int>>& descriptors) {
  auto manager = net::ManagerSocket::of_environment();
  if (!manager) return {};
  // The process before may end soon, and then it must not be the main one.
  (void)manager->try_to_tell(fmt::format("MAINPID={}\n", ::getpid()), {});
  KeptCopies copies;
  for (const auto& [name, descriptor] : descriptors) {
    copies.emplace_back(name, net::Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)));
  }
  const SignalBlock blocked;
  return std::jthread([manager = std::move(*manager), copies = std::move(copies)](
                          const std::stop_token& stop) { tell_all(manager, copies, stop); });
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
