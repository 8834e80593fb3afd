#include "proxy/handover/connection_keeper.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <stop_token>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "proxy/handover/stream_counts.h"

namespace vpfs::proxy {
namespace {

// For listeners, control ports and locks.
constexpr std::size_t kOtherDescriptors = 16;
// The manager may need a moment to see that a connection has ended.
constexpr Duration kUntilDropped = std::chrono::seconds(2);
constexpr std::size_t kToldAtOnce = 16;
constexpr int kLastWaits = 10;

std::string fresh_name() {
  return fmt::format("{}{:08x}", ConnectionKeeper::kSocketNames, std::random_device{}());
}

net::Descriptor copy_of(int descriptor) {
  return net::Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

}  // namespace

std::unique_ptr<ConnectionKeeper> ConnectionKeeper::make(std::size_t most) {
  auto manager = net::ManagerSocket::of_environment();
  const std::size_t stored = net::most_stored();
  if (!manager || stored < kOtherDescriptors + 2) return nullptr;
  const std::size_t places =
      std::min({most, (stored - kOtherDescriptors) / 2, RestJournal::kMostPlaces});
  Result<RestJournal> journal = RestJournal::make(places);
  if (!journal) {
    spdlog::warn("connections end with a crash: {}", journal.error().message);
    return nullptr;
  }
  return std::unique_ptr<ConnectionKeeper>(
      new ConnectionKeeper(std::move(*manager), std::move(*journal), places));
}

ConnectionKeeper::ConnectionKeeper(net::ManagerSocket manager, RestJournal journal,
                                   std::size_t places)
    : manager_(std::move(manager)),
      journal_(std::move(journal)),
      places_(places),
      names_{fresh_name()} {
  for (std::size_t i = 0; i < places; ++i) free_.emplace_back(TimePoint(), i);
}

void ConnectionKeeper::adopt(std::set<std::string> names) {
  if (!names.empty()) names_ = std::move(names);
}

std::optional<std::size_t> ConnectionKeeper::take_place(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (is_over_ || free_.empty()) return std::nullopt;
  const auto [since, place] = free_.front();
  if (since != TimePoint() && now - since < kUntilDropped) return std::nullopt;
  free_.pop_front();
  ++kept_;
  return place;
}

void ConnectionKeeper::give_back(std::size_t place, TimePoint now) {
  journal_.clear(place);
  const std::lock_guard lock(mutex_);
  free_.emplace_back(now, place);
  --kept_;
}

bool ConnectionKeeper::record(std::size_t place, std::array<int, 2> sockets, SavedState state) {
  const auto client = stream_counts(sockets[0]);
  const auto server = stream_counts(sockets[1]);
  if (client && server &&
      journal_.write(place, {.client = *client, .server = *server, .state = std::move(state)})) {
    return true;
  }
  journal_.clear(place);
  return false;
}

void ConnectionKeeper::offer(std::array<int, 2> sockets) {
  Message message = {.words = fmt::format("FDSTORE=1\nFDNAME={}\n", *names_.begin()),
                     .sockets = {copy_of(sockets[0]), copy_of(sockets[1])}};
  if (!message.sockets[0] || !message.sockets[1]) return;  // out of descriptors
  const std::lock_guard lock(mutex_);
  if (is_over_ || untold_.size() >= places_) return;
  untold_.push_back(std::move(message));
}

std::optional<ConnectionKeeper::Message> ConnectionKeeper::next_message() {
  const std::lock_guard lock(mutex_);
  if (untold_.empty()) return std::nullopt;
  Message message = std::move(untold_.front());
  untold_.pop_front();
  return message;
}

void ConnectionKeeper::put_back(Message message) {
  const std::lock_guard lock(mutex_);
  if (!is_over_) untold_.push_front(std::move(message));
}

void ConnectionKeeper::tell_some() {
  for (std::size_t i = 0; i < kToldAtOnce; ++i) {
    std::optional<Message> message = next_message();
    if (!message) return;
    const std::array<int, 2> sockets = {message->sockets[0].get(), message->sockets[1].get()};
    if (manager_.try_to_tell(message->words, sockets)) continue;
    const int error = errno;
    if (error != EAGAIN && error != EINTR) return give_up(error);
    return put_back(std::move(*message));
  }
}

void ConnectionKeeper::give_up(int error) {
  spdlog::warn("the service manager at {} takes no connections, they end with a crash: {}",
               manager_.path(), std::system_category().message(error));
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  untold_.clear();
}

void ConnectionKeeper::leave() {
  journal_.close();
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    untold_.clear();
  }
  int waits = kLastWaits;
  for (const std::string& name : names_) {
    (void)manager_.tell(fmt::format("FDSTOREREMOVE=1\nFDNAME={}\n", name), {}, waits, {});
  }
}

}  // namespace vpfs::proxy
