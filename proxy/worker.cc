#include "proxy/worker.h"

#include <algorithm>
#include <random>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/check.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/session.h"

namespace vpfs::proxy {
namespace {

constexpr std::size_t kListedAtOnce = 64;
constexpr Duration kSweepInterval = std::chrono::milliseconds(50);
constexpr std::size_t kSweptAtOnce = 500;  // sessions, roughly
constexpr std::size_t kMostSweepParts = 25;
// The pool keeps this many requests, with message buffers of at most this size.
constexpr std::size_t kMostIdle = 256;
constexpr std::size_t kMostKept = std::size_t{8} * 1024;

// The upstream leg is local when both of its ends are the same host.
bool is_local(const net::Socket& socket) {
  std::error_code error;
  const auto here = socket.local_endpoint(error).address();
  const auto there = socket.remote_endpoint(error).address();
  return !error && (here == there || there.is_loopback());
}

}  // namespace

Worker::Worker(std::size_t index, SharedState& shared, Dispatcher& dispatcher)
    : index_(index),
      shared_(shared),
      dispatcher_(dispatcher),
      settings_(dispatcher.settings()),
      work_(asio::make_work_guard(context_)),
      sweep_timer_(context_),
      ask_again_(context_),
      pump_thread_(shared.clock, calls_, [this] { end_of_event(); }),
      table_seed_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      identifier_(dispatcher, table_seed_) {}

Worker::~Worker() = default;

void Worker::run() {
  arm_sweep();
  context_.run();
}

void Worker::adopt(int client_socket, const net::Endpoint& client) {
  asio::post(context_, [this, client_socket, client] {
    asio::co_spawn(context_, open_session(client_socket, client), asio::detached);
  });
}

void Worker::wake_up() {
  asio::post(context_, [this] {
    const PumpThread::Event event(pump_thread_);
    need_turn_ = true;
  });
}

void Worker::stop() {
  asio::post(context_, [this] {
    const PumpThread::Event event(pump_thread_);
    stopping_ = true;
    for (const std::shared_ptr<Session>& session : sessions_) session->close("the proxy ends");
    sweep_timer_.cancel();
    ask_again_.cancel();
    work_.reset();
  });
}

net::Task<> Worker::open_session(int client_socket, net::Endpoint client) {
  net::Socket client_side(context_);
  std::error_code error;
  client_side.assign(client.protocol(), client_socket, error);
  if (error) ::close(client_socket);
  Counters& counters = shared_.counters;
  const Duration timeout = settings_->config.timeouts.connect;
  const Result<net::Endpoint> upstream = upstream_of(client_side);
  Result<net::Socket> server_side = fail("");
  if (upstream) {
    server_side = co_await net::connect(*upstream, timeout);
  } else {
    server_side = std::unexpected(upstream.error());
  }
  const PumpThread::Event event(pump_thread_);
  if (error || !server_side || stopping_) {
    if (!server_side) {
      ++counters.upstream_failures;
      refused(client, upstream, server_side.error().message);
    }
    --counters.connections_open;
    co_return;
  }
  shared_.upstream_health.reached(*upstream, now());
  net::keep_alive(client_side.native_handle());
  net::keep_alive(server_side->native_handle());
  const std::string& congestion = settings_->config.upstream_congestion;
  if (congestion != "system" && is_local(*server_side)) {
    if (const auto problem =
            net::set_congestion_control(server_side->native_handle(), congestion)) {
      spdlog::debug("congestion control {}: {}", congestion, problem.message());
    }
  }
  auto session =
      std::make_shared<Session>(*this, std::move(client_side), std::move(*server_side), client);
  sessions_.insert(session);
  session->start();
}

void Worker::refused(const net::Endpoint& client, const Result<net::Endpoint>& upstream,
                     const std::string& problem) {
  if (upstream) {
    shared_.upstream_health.failed(*upstream, problem, net::to_string(client), now());
  } else if (shared_.misdirected++ == 0) {
    spdlog::warn("client {} and others like it refused: {}", net::to_string(client), problem);
  }
}

// The original destination of a redirected client, with a loopback address: packets of this host to
// it are not redirected.
Result<net::Endpoint> Worker::upstream_of(net::Socket& client) const {
  if (shared_.upstream) return *shared_.upstream;
  const Result<net::Endpoint> original = net::original_destination(client.native_handle());
  if (!original) return original;
  std::error_code error;
  const net::Endpoint here = client.local_endpoint(error);
  if (error || original->port() == here.port()) {
    return fail(fmt::format(
        "the client connected to the proxy's port {} and was not redirected to it", here.port()));
  }
  const bool is_v4 = original->protocol() == asio::ip::tcp::v4();
  return is_v4 ? net::Endpoint(asio::ip::address_v4::loopback(), original->port())
               : net::Endpoint(asio::ip::address_v6::loopback(), original->port());
}

PendingIo& Worker::make_held(TimePoint arrival) {
  if (free_.empty()) {
    pool_.push_back(std::make_unique<PendingIo>());
    pool_.back()->pool_index = pool_.size() - 1;
    free_.push_back(pool_.back().get());
  }
  PendingIo& io = *free_.back();
  free_.pop_back();
  io.arrival = arrival;
  io.number = ++requests_;
  io.state = PendingIo::State::parked;
  io.worker = index_;
  io.held = true;
  io.submitted = false;
  io.gave_slot_up = false;
  io.behind_message = false;
  io.on_probation = false;
  io.parked = false;
  io.waits_for_turn = false;
  io.has_turn = false;
  io.previous_held = last_held_;
  io.next_held = nullptr;
  (last_held_ != nullptr ? last_held_->next_held : first_held_) = &io;
  last_held_ = &io;
  ++shared_.counters.ios_alive;
  return io;
}

void Worker::leave_held_list(PendingIo& io) {
  if (!std::exchange(io.held, false)) return;
  (io.previous_held != nullptr ? io.previous_held->next_held : first_held_) = io.next_held;
  (io.next_held != nullptr ? io.next_held->previous_held : last_held_) = io.previous_held;
}

void Worker::recycle(PendingIo& io) {
  VPFS_ASSERT(!io.is_counted);
  leave_held_list(io);
  --shared_.counters.ios_alive;
  if (free_.size() >= kMostIdle) return give_memory_back(io);
  io.message.clear();
  if (io.message.capacity() > kMostKept) io.message.shrink_to_fit();
  free_.push_back(&io);
}

// Moves the last request of the pool into the gap.
void Worker::give_memory_back(PendingIo& io) {
  const std::size_t index = io.pool_index;
  pool_.back()->pool_index = index;
  std::swap(pool_[index], pool_.back());
  pool_.pop_back();
}

void Worker::end_of_event() {
  while (need_turn_ || !turn_.empty() || !to_flush_.empty() || pump_thread_.has_waits() ||
         !to_close_.empty()) {
    if (need_turn_ || !turn_.empty()) {
      take_turn();
    }
    flushing_.swap(to_flush_);
    for (Session* session : flushing_) session->flush();
    flushing_.clear();
    // A flush may have received more. The dispatcher has to know it before the session ends.
    if (!turn_.empty()) continue;
    pump_thread_.start_waits();
    for (const std::shared_ptr<Session>& session : std::exchange(to_close_, {})) {
      session->give_everything_back();
      sessions_.erase(session);
      --shared_.counters.connections_open;
    }
  }
}

void Worker::take_turn() {
  released_.clear();
  Dispatcher::Next next = dispatcher_.turn(index_, turn_, now(), released_);
  ask_again_at(next.until);
  shared_.counters.slots_given_up += next.slots_given_up;
  for (const Turn::End& each : turn_.ended) recycle(*each.io);
  for (PendingIo* io : turn_.abandoned) recycle(*io);
  turn_.clear();
  // The next turn tells the dispatcher that the old numbers are forgotten.
  need_turn_ = std::exchange(turn_.epoch, next.epoch) != next.epoch;
  if (need_turn_) take_on(std::move(next.settings));
  for (PendingIo* io : released_) io->session->release(*io);
}

// Sessions take other settings on with their next bytes.
void Worker::take_on(SettingsPtr settings) {
  identifier_.forget_all();
  if (settings_ == settings) return;
  settings_ = std::move(settings);
  ++settings_number_;
}

void Worker::ask_again_at(std::optional<TimePoint> until) {
  // A timer that is set already is left alone: the end of a lease seldom changes.
  if (!until || stopping_ || until == asked_for_) return;
  asked_for_ = until;
  ask_again_.expires_at(*until);
  ask_again_.async_wait([this](std::error_code error) {
    if (error) return;
    asked_for_.reset();
    const PumpThread::Event event(pump_thread_);
    need_turn_ = true;
  });
}

struct Worker::Listing {
  ListDone done;
  std::vector<std::weak_ptr<Session>> sessions;
  std::size_t listed = 0;
  std::vector<ShownConnection> connections;
};

void Worker::list_connections(ListDone done) {
  auto listing = std::make_shared<Listing>();  // shared by the events that it takes
  listing->done = std::move(done);
  asio::post(context_, [this, listing = std::move(listing)] {
    listing->sessions.assign(sessions_.begin(), sessions_.end());
    list_more(listing);
  });
}

void Worker::list_more(std::shared_ptr<Listing> listing) {
  const std::size_t end = std::min(listing->sessions.size(), listing->listed + kListedAtOnce);
  for (; listing->listed < end; ++listing->listed) {
    const std::shared_ptr<Session> session = listing->sessions[listing->listed].lock();
    if (session == nullptr) continue;
    const ClientIdentity& identity = session->identity();
    listing->connections.push_back(
        {.address = identity.endpoint().address().to_string(), .rows = identity.shown().rows()});
  }
  if (end == listing->sessions.size()) return listing->done(std::move(listing->connections));
  asio::post(context_,
             [this, listing = std::move(listing)]() mutable { list_more(std::move(listing)); });
}

// Many sessions are checked in several parts, so that no check takes long.
void Worker::arm_sweep() {
  const std::size_t parts =
      std::clamp<std::size_t>(sessions_.size() / kSweptAtOnce, 1, kMostSweepParts);
  sweep_timer_.expires_after(kSweepInterval / parts);
  sweep_timer_.async_wait([this, parts](std::error_code error) {
    if (error || stopping_) return;
    {
      const PumpThread::Event event(pump_thread_);
      sweep(parts);
    }
    arm_sweep();
  });
}

// A part is a range of hash buckets. When the table grows, sessions move: some are checked twice in
// a round, others not before the next one.
void Worker::sweep(std::size_t parts) {
  const std::size_t places = sessions_.bucket_count();
  if (swept_ >= places) {
    swept_ = 0;
    refuse_overdue(now());
  }
  for (const std::size_t end = std::min(places, swept_ + places / parts + 1); swept_ < end;
       ++swept_) {
    for (auto each = sessions_.begin(swept_); each != sessions_.end(swept_); ++each) {
      (*each)->check_time(now());
    }
  }
}

void Worker::refuse_overdue(TimePoint now) {
  const Duration hold = shared_.hold.load();
  if (index_ == 0 && dispatcher_.set_hold(hold, now)) need_turn_ = true;
  std::size_t refused = 0;
  for (PendingIo* io = first_held_; io != nullptr && now - io->arrival >= hold;) {
    PendingIo* const next = io->next_held;
    // release() refuses a request that the scheduler has just released.
    if (dispatcher_.refuse(*io, now)) {
      io->session->refuse(*io);
      ++refused;
    }
    io = next;
  }
  if (refused > 0) {
    need_turn_ = true;
    spdlog::warn(
        "{} requests were refused after they were held for {}: demand exceeds the data server or a "
        "limit",
        refused, to_string(hold));
  }
}

}  // namespace vpfs::proxy
