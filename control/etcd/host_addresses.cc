#include "control/etcd/host_addresses.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/start_thread.h"

namespace vpfs::control {
namespace {

bool is_address(const std::string& host) {
  in6_addr unused = {};
  return ::inet_pton(AF_INET, host.c_str(), &unused) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &unused) == 1;
}

}  // namespace

struct HostAddresses::Shared {
  explicit Shared(LookUp asks) : look_up(std::move(asks)) {}

  const LookUp look_up;
  std::mutex mutex;  // guards what follows
  std::condition_variable came;
  bool is_under_way = false;
  std::optional<Addresses> found;
};

HostAddresses::HostAddresses(std::string host, LookUp look_up)
    : host_(std::move(host)), shared_(std::make_shared<Shared>(std::move(look_up))) {
  if (is_address(host_)) known_ = {host_};
}

Result<std::string> HostAddresses::next(Duration patience) {
  if (is_address(host_)) return host_;
  VPFS_TRY(begin());
  std::string problem = "its host's name was not found in time";
  {
    std::unique_lock lock(shared_->mutex);
    if (known_.empty()) {
      shared_->came.wait_for(lock, patience, [this] { return !shared_->is_under_way; });
    }
    if (std::optional<Addresses> found = std::exchange(shared_->found, std::nullopt)) {
      if (*found) {
        // Another order of the same would pass some over.
        if (!std::ranges::is_permutation(known_, **found)) known_ = std::move(**found);
      } else {
        problem = std::move(found->error().message);
      }
    }
  }
  if (known_.empty()) return fail(std::move(problem));
  return known_[turn_++ % known_.size()];
}

Result<void> HostAddresses::begin() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_under_way) return {};
  Result<std::thread> thread = net::start_thread([shared = shared_, host = host_] {
    Addresses found = shared->look_up(host);
    const std::lock_guard guard(shared->mutex);
    shared->found = std::move(found);
    shared->is_under_way = false;
    shared->came.notify_all();
  });
  if (!thread) return std::unexpected(thread.error());
  thread->detach();
  shared_->is_under_way = true;
  return {};
}

HostAddresses::Addresses HostAddresses::look_up_host(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return fail(fmt::format("host {} not found: {}", host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, ::freeaddrinfo);
  std::vector<std::string> found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text = {};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      found.emplace_back(text.data());
    }
  }
  if (found.empty()) return fail(fmt::format("host {} has no address", host));
  return found;
}

}  // namespace vpfs::control
