#include "proxy/worker.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include "base/check.h"
#include "net/congestion/congestion_control.h"
#include "net/connecting.h"
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

// How far the system's clock is ahead of one that may be a test's.
Duration ahead_of(const SystemClock& system, const Clock& shared) {
  const TimePoint before = system.now();
  const TimePoint at = shared.now();
  const bool is_the_same = before <= at && at <= system.now();
  return is_the_same ? Duration::zero() : before - at;
}

}  // namespace

Worker::Worker(std::size_t index, SharedState& shared, Dispatcher& dispatcher)
    : index_(index),
      shared_(shared),
      dispatcher_(dispatcher),
      settings_(dispatcher.settings()),
      ahead_(ahead_of(waits_, shared.clock)),
      pump_thread_(set_, shared.clock, calls_, [this] { end_of_event(); }),
      table_seed_((std::uint64_t{std::random_device{}()} << 32) | std::random_device{}()),
      identifier_(dispatcher, table_seed_) {
  busy_poll_.set_longest(longest_poll());
}

Worker::~Worker() = default;

void Worker::run() {
  // Limits release requests at times that are closer together than the kernel's usual slack.
  (void)::prctl(PR_SET_TIMERSLACK, 1UL);
  (void)::prctl(PR_SET_NAME, fmt::format("worker-{}", index_).c_str());
  taken();
  for (std::uint64_t turn = 1; !stopping_; ++turn) {
    turns_.store(turn, std::memory_order_relaxed);
    const TimePoint now = waits_.now();
    take_timers(now);
    wait(now);
    pump_thread_.go_on();
  }
}

// Serves what there is, or what comes before the next deadline.
void Worker::wait(TimePoint now) {
  if (pump_thread_.has_more()) {
    (void)set_.serve(Duration::zero());
    return;
  }
  if (const Duration longest = busy_poll_.next(now); longest > Duration::zero()) {
    if (poll(std::min(longest, patience(now)))) return;
    now = waits_.now();
  }
  (void)set_.serve(patience(now));
}

// Returns whether anything came.
bool Worker::poll(Duration longest) {
  const bool found =
      busy_poll_.poll(longest, waits_, [this] { return set_.serve(Duration::zero()); });
  Counters& counters = shared_.counters;
  (found ? counters.polls_found : counters.polls_in_vain).fetch_add(1, std::memory_order_relaxed);
  return found;
}

void Worker::adopt(int client_socket, const net::Endpoint& client) {
  mailbox_.post(
      [this, client_socket, client] { begin_session(net::Descriptor(client_socket), client); });
}

void Worker::wake_up() {
  mailbox_.post([this] {
    const PumpThread::Event event(pump_thread_);
    need_turn_ = true;
  });
}

void Worker::stop() {
  mailbox_.post([this] {
    const PumpThread::Event event(pump_thread_);
    stopping_ = true;
    for (const std::shared_ptr<Session>& session : sessions_) {
      // What was packed may be another process's already.
      session->packed() ? session->depart() : session->close("the proxy ends");
    }
    shared_.counters.connections_open -= openings_.size();
    openings_.clear();
  });
}

void Worker::begin_session(net::Descriptor client_socket, const net::Endpoint& client) {
  if (stopping_) {
    --shared_.counters.connections_open;
    return;
  }
  const Result<net::Endpoint> upstream = upstream_of(client_socket.get());
  const Result<void> begun = upstream ? begin_opening(std::move(client_socket), client, *upstream)
                                      : Result<void>(std::unexpected(upstream.error()));
  if (begun) return;
  const PumpThread::Event event(pump_thread_);
  refused(client, upstream, begun.error().message);
}

Result<void> Worker::begin_opening(net::Descriptor client_socket, const net::Endpoint& client,
                                   const net::Endpoint& upstream) {
  Result<net::Descriptor> server = net::begin_connect(upstream);
  VPFS_TRY(server);
  Opening& opening =
      openings_.emplace_back(set_, std::move(client_socket), std::move(*server),
                             [this](Opening& opening_done) { opened(opening_done); });
  opening.client_endpoint = client;
  opening.upstream = upstream;
  opening.deadline = waits_.now() + settings_->config.timeouts.connect;
  Result<void> watched = opening.watch();
  if (!watched) end_opening(opening);
  return watched;
}

void Worker::opened(Opening& opening) {
  const PumpThread::Event event(pump_thread_);
  if (const auto outcome = net::connect_outcome(opening.server.get(), opening.upstream); outcome) {
    make_session(opening);
  } else {
    refused(opening.client_endpoint, opening.upstream, outcome.error().message);
  }
  end_opening(opening);
}

void Worker::end_opening(const Opening& opening) {
  openings_.remove_if([&](const Opening& each) { return &each == &opening; });
}

// After a reload those before it end by their old time-out, and later ones not before them.
void Worker::refuse_late_openings(TimePoint now) {
  while (!openings_.empty() && openings_.front().deadline <= now) {
    const Opening& late = openings_.front();
    refused(late.client_endpoint, late.upstream, net::connect_timed_out(late.upstream).message);
    openings_.pop_front();
  }
}

void Worker::make_session(Opening& opening) {
  shared_.upstream_health.reached(opening.upstream, now());
  const int server = opening.server.get();
  net::keep_alive(opening.client.get());
  net::keep_alive(server);
  const std::string& congestion = settings_->config.local_congestion;
  if (congestion != "system") {
    net::choose_local_congestion(server, congestion);
    net::choose_local_congestion(opening.client.get(), congestion);
  }
  auto session = std::make_shared<Session>(*this, std::move(opening.client),
                                           std::move(opening.server), opening.client_endpoint);
  sessions_.insert(session);
  session->start();
}

void Worker::refused(const net::Endpoint& client, const Result<net::Endpoint>& upstream,
                     const std::string& problem) {
  ++shared_.counters.upstream_failures;
  --shared_.counters.connections_open;
  if (upstream) {
    shared_.upstream_health.failed(*upstream, problem, net::to_string(client), now());
  } else if (shared_.misdirected++ == 0) {
    spdlog::warn("client {} and others like it refused: {}", net::to_string(client), problem);
  }
}

// The original destination of a redirected client, with a loopback address: packets of this host to
// it are not redirected.
Result<net::Endpoint> Worker::upstream_of(int client) const {
  if (shared_.upstream) return *shared_.upstream;
  const Result<net::Endpoint> original = net::original_destination(client);
  if (!original) return original;
  const Result<net::Endpoint> here = net::local_endpoint(client);
  if (!here) return here;
  if (original->port() == here->port()) {
    return fail(fmt::format(
        "the client connected to the proxy's port {} and was not redirected to it", here->port()));
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
  io.client_is_slow = false;
  io.slows_handle = false;
  io.stuck = false;
  io.moved = 0;
  io.waited = {};
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
  if (taking_) return;
  while (need_turn_ || !turn_.empty() || !to_flush_.empty() || !to_close_.empty()) {
    if (need_turn_ || !turn_.empty()) {
      take_turn();
    }
    flushing_.swap(to_flush_);
    for (Session* session : flushing_) session->flush();
    flushing_.clear();
    // A flush may have received more, of any session. The dispatcher has to know it before the
    // session ends, and no flush may be due for a session that is gone.
    if (!turn_.empty() || !to_flush_.empty()) continue;
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
  if (next.until) ask_again_ = *next.until;
  shared_.counters.slots_given_up += next.slots_given_up;
  for (const Turn::End& each : turn_.ended) recycle(*each.io);
  for (PendingIo* io : turn_.abandoned) recycle(*io);
  turn_.clear();
  // The next turn tells the dispatcher that the old numbers are forgotten.
  need_turn_ = std::exchange(turn_.epoch, next.epoch) != next.epoch;
  if (need_turn_) take_on(std::move(next.settings));
  for (PendingIo* io : released_) io->session->release(*io);
}

Duration Worker::longest_poll() const {
  return settings_->config.busy_poll.value_or(shared_.automatic_busy_poll);
}

// Sessions take other settings on with their next bytes.
void Worker::take_on(WorkerSettingsPtr settings) {
  identifier_.forget_all();
  if (settings_ == settings) return;
  settings_ = std::move(settings);
  busy_poll_.set_longest(longest_poll());
  ++settings_number_;
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
  mailbox_.post([this, listing = std::move(listing)] {
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
  mailbox_.post([this, listing = std::move(listing)]() mutable { list_more(std::move(listing)); });
}

Duration Worker::patience(TimePoint now) const {
  return std::max(std::min(next_sweep_ - now, ask_again_ - (now - ahead_)), Duration::zero());
}

void Worker::take_timers(TimePoint now) {
  if (now - ahead_ >= ask_again_) {
    ask_again_ = kNever;
    const PumpThread::Event event(pump_thread_);
    need_turn_ = true;
  }
  if (now >= next_sweep_) {
    const PumpThread::Event event(pump_thread_);
    refuse_late_openings(now);
    sweep();
  }
}

// Many sessions are checked in several parts, so that no check takes long. A part is a range of
// hash buckets. When the table grows, sessions move: some are checked twice in a round, others not
// before the next one.
void Worker::sweep() {
  const std::size_t parts =
      std::clamp<std::size_t>(sessions_.size() / kSweptAtOnce, 1, kMostSweepParts);
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
  next_sweep_ = waits_.now() + kSweepInterval / parts;
}

void Worker::refuse_overdue(TimePoint now) {
  const Duration hold = shared_.hold.load();
  if (index_ == 0 && dispatcher_.set_hold(hold, now)) need_turn_ = true;
  std::size_t refused = 0;
  for (PendingIo* io = first_held_; io != nullptr && now - io->arrival >= hold;) {
    PendingIo* const next = io->next_held;
    // release() refuses a request that the scheduler has just released. A packed session's may be
    // another process's already.
    if (!io->session->packed() && dispatcher_.refuse(*io, now)) {
      io->session->refuse(*io);
      ++refused;
    }
    io = next;
  }
  if (refused > 0) {
    need_turn_ = true;
    spdlog::warn(
        "requests refused after they were held for {}: {}; demand exceeds the data server or a "
        "limit",
        to_string(hold), refused);
  }
}

}  // namespace vpfs::proxy
