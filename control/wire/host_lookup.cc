#include "control/wire/host_lookup.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>

#include "net/start_thread.h"

namespace vpfs::control {

struct HostLookup::Shared {
  std::mutex mutex;                     // guards the two that follow
  asio::io_context* context = nullptr;  // null: the caller has gone
  std::optional<Found> found;
  asio::steady_timer* timer = nullptr;  // the caller's; belongs to its strand
};

HostLookup::HostLookup(asio::io_context& context, const PortAddress& address)
    : address_(address), timer_(context), shared_(std::make_shared<Shared>()) {
  shared_->context = &context;
  shared_->timer = &timer_;
  std::error_code error;
  const asio::ip::address number = asio::ip::make_address(address.host, error);
  if (!error) {
    shared_->found = std::vector{net::Endpoint(number, address.port)};
    return;
  }
  Result<std::thread> thread =
      net::start_thread([shared = shared_, address] { run(shared, address); });
  if (thread) {
    thread->detach();
  } else {
    shared_->found =
        std::unexpected(fmt::format("host {}: {}", address.host, thread.error().message));
  }
}

HostLookup::~HostLookup() {
  shared_->timer = nullptr;
  const std::lock_guard lock(shared_->mutex);
  shared_->context = nullptr;
}

void HostLookup::run(const std::shared_ptr<Shared>& shared, const PortAddress& address) {
  asio::io_context own;
  asio::ip::tcp::resolver resolver(own);
  std::error_code error;
  const auto entries = resolver.resolve(address.host, std::to_string(address.port), error);
  Found found;
  for (const auto& entry : entries) found->push_back(entry.endpoint());
  if (error) {
    found = std::unexpected(fmt::format("host {} not found: {}", address.host, error.message()));
  }
  const std::lock_guard lock(shared->mutex);
  shared->found = std::move(found);
  if (shared->context == nullptr) return;
  asio::post(*shared->context, [shared] {
    if (shared->timer != nullptr) shared->timer->cancel();
  });
}

bool HostLookup::is_done() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->found.has_value();
}

net::Task<HostLookup::Found> HostLookup::wait(Duration patience) {
  const std::shared_ptr<Shared> shared = shared_;
  if (!is_done()) {
    timer_.expires_after(patience);
    (void)co_await timer_.async_wait(net::kUseTask);  // `this` may be gone after it
  }
  const std::lock_guard lock(shared->mutex);
  if (shared->found) co_return *shared->found;
  co_return std::unexpected("its host's name was not found in time");
}

net::Task<HostLookup::Found> HostLookups::find(PortAddress address, Duration patience) {
  const auto is_its = [&](const auto& each) { return each->address() == address; };
  auto place = std::ranges::find_if(under_way_, is_its);
  if (place == under_way_.end()) {
    place = under_way_.insert(place, std::make_unique<HostLookup>(context_, address));
  }
  HostLookup::Found found = co_await (*place)->wait(patience);
  // Another coroutine may have waited for it too, and have erased it.
  std::erase_if(under_way_, [&](const auto& each) { return is_its(each) && each->is_done(); });
  co_return found;
}

}  // namespace vpfs::control
