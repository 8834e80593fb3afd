#include "proxy/session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "protocols/registry.h"

namespace vpfs::proxy {
namespace {
// Identities that one connection shows at once; the node of a kernel client may show many.
constexpr std::size_t kMostKnown = 64;
// Times limits.held_* that a client may have held before its requests are refused at once.
constexpr std::size_t kOverrun = 4;
// So long a request may wait that its client need not be looked for before it goes on.
constexpr Duration kUnseen = std::chrono::milliseconds(1);
// How often a client whose stream is not read is asked whether it is still there.
constexpr Duration kHangUpInterval = std::chrono::milliseconds(500);
// What a pump keeps of the data server's bytes for a client that takes none.
constexpr std::size_t kUnsentBesides = std::size_t{256} * 1024;

IoKind io_kind(RequestKind kind) {
  switch (kind) {
    case RequestKind::read:
      return IoKind::read;
    case RequestKind::write:
      return IoKind::write;
    case RequestKind::metadata:
      return IoKind::metadata;
  }
  return IoKind::read;
}
}  // namespace

Session::Session(Worker& worker, net::Socket client, net::Socket server,
                 net::Endpoint client_endpoint)
    : worker_(worker),
      shared_(worker.shared()),
      client_(std::move(client)),
      server_(std::move(server)),
      client_endpoint_(std::move(client_endpoint)),
      conversation_(make_conversation(worker.settings().config.protocol)),
      to_server_(*this, worker, Sender::client, client_, server_),
      to_client_(*this, worker, Sender::server, server_, client_) {}

Session::~Session() = default;

void Session::start() {
  follow_settings();
  conversation_->trust_peer(known_by_->is_server(client_endpoint_.address()));
  to_server_.start();
  to_client_.start();
}

void Session::close(const std::string& reason) {
  if (std::exchange(closing_, true)) return;
  const auto level = outstanding_ + held_requests_ > 0 ? spdlog::level::warn : spdlog::level::debug;
  spdlog::log(level, "client {}: connection closed: {} ({} requests held, {} at the data server)",
              net::to_string(client_endpoint_), reason, held_requests_, outstanding_);
  worker_.close_later(shared_from_this());
}

void Session::give_everything_back() {
  const TimePoint now = worker_.now();
  ios_.for_each([&](IoKey, PendingIo* io) {
    worker_.dispatcher().abandon(*io, now);
    worker_.recycle(*io);
  });
  ios_ = {};
  if (client_id_ != kNoClient) worker_.dispatcher().leave_client(client_id_);
  worker_.slots_changed();
  update_byte_counters();
  std::error_code ignored;
  client_.close(ignored);
  server_.close(ignored);
}

bool Session::same_identity(const Identity& known, const IoDescription& io,
                            std::optional<std::uint32_t> uid) const {
  if (known.kind != io.kind || known.file_system != io.file_system || known.uid != uid ||
      known.node != io.node || known.target != io.target || known.owner != io.owner ||
      known.directory != io.directory) {
    return false;
  }
  const std::vector<std::string>& names = known_by_->classifier.hint_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (conversation_->held_hint(names[i]) != known.hints[i]) return false;
  }
  return true;
}

// After a reload other rules may hold, and other requests be scheduled.
void Session::follow_settings() {
  if (known_by_ == worker_.settings_in_force()) return;
  known_by_ = worker_.settings_in_force();
  known_.clear();
  conversation_->hold_metadata(known_by_->config.schedule_metadata);
}

const Session::KnownIdentity& Session::identify(const IoDescription& io) {
  const std::optional<std::uint32_t> uid = user_of(io);
  for (const KnownIdentity& known : known_) {
    if (same_identity(known.identity, io, uid)) return known;
  }
  Identity identity = {.kind = io.kind,
                       .file_system = io.file_system,
                       .uid = uid,
                       .node = io.node,
                       .target = io.target,
                       .owner = io.owner,
                       .directory = std::string(io.directory)};
  for (const std::string& name : known_by_->classifier.hint_names()) {
    identity.hints.emplace_back(conversation_->held_hint(name));
  }
  const auto match = known_by_->classifier.classify(client_endpoint_.address(), identity);
  const AppId app = worker_.dispatcher().app_of(match, worker_.now());
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back(
      {.identity = std::move(identity), .app = app, .traffic_class = match.traffic_class});
  return known_.back();
}

// What a node's kernel writes back and reads ahead has uid 0, whoever it is for.
std::optional<std::uint32_t> Session::user_of(const IoDescription& io) {
  if (io.open_file.empty() || !io.uid || !known_by_->config.write_back_by_file ||
      !known_by_->classifier.looks_at_uid()) {
    return io.uid;
  }
  const std::uint64_t file = OpenFileUsers::key(io.node.value_or(0), io.open_file);
  if (*io.uid != 0) {
    const bool is_news = file != seen_file_ || *io.uid != seen_uid_;
    seen_file_ = file;
    seen_uid_ = *io.uid;
    if (is_news) shared_.open_files.saw(file, *io.uid);
  } else {
    const std::optional<std::uint32_t> user = shared_.open_files.only_user(file);
    Counters& counters = shared_.counters;
    if (io.kind == RequestKind::write) {
      ++(user ? counters.write_back_by_file : counters.write_back_unknown);
    } else {
      ++(user ? counters.read_by_file : counters.read_unknown);
    }
    if (user) return user;
  }
  return io.uid;
}

void Session::join_client() {
  const std::optional<std::uint32_t> number = conversation_->serial_client();
  if (client_id_ != kNoClient || !number) return;
  const bool is_known = *number != kUnknownNode;
  if (!is_known) ++shared_.counters.connections_unknown_node;
  std::string name = client_endpoint_.address().to_string();
  name += is_known ? fmt::format(" node {}", *number) : " unknown node";
  if (!shared_.upstream) {
    // A client has as many connections to each of several servers.
    std::error_code error;
    name += fmt::format(" to port {}", server_.remote_endpoint(error).port());
  }
  client_id_ = worker_.dispatcher().join_client(name);
}

void Session::hold(std::span<const std::byte> message) {
  const IoDescription& description = conversation_->held();
  // The conversation forgets a read at the header of its last data, we at their last byte.
  if (ios_.find(description.key) != nullptr) {
    ++shared_.counters.framing_errors;
    return close("the client used the tag of an I/O that is still under way again");
  }
  const KnownIdentity& who = identify(description);
  if (holds_far_too_much()) return refuse_to_client(description.key, who.app);
  PendingIo& io = worker_.make_held(worker_.now());
  join_client();
  io.session = this;
  io.key = description.key;
  io.app = who.app;
  io.traffic_class = who.traffic_class;
  io.kind = io_kind(description.kind);
  io.size = Bytes{description.bytes};
  io.device = description.device.value_or(0);
  io.client = client_id_;
  io.fingerprint = description.fingerprint;
  io.cost = known_by_->cost_model.cost(io.kind, io.size);
  io.message.assign(message.begin(), message.end());
  ios_.insert(io.key, &io);
  ++held_requests_;
  held_bytes_ += message.size();
  if (holds_more_than(1, 1) && outstanding_ == 0) to_server_.pause();
  submit(io);
}

// Whether limits.held_* x times / divisor are reached.
bool Session::holds_more_than(std::size_t times, std::size_t divisor) const {
  const Limits& limits = worker_.settings().config.limits;
  return held_requests_ * divisor >= limits.held_requests * times ||
         held_bytes_ * divisor >= limits.held_bytes.count * times;
}

// Behind the requests may stand the data of writes that have been started. As long as anything of
// this client is at the data server its stream is read, and what comes beyond a bound is refused:
// waiting for room would be waiting for ourselves.
bool Session::holds_far_too_much() {
  if (!holds_more_than(kOverrun, 1)) return false;
  if (!std::exchange(overrun_told_, true)) {
    spdlog::warn("client {}: {} requests of {} bytes are held: further ones are refused",
                 net::to_string(client_endpoint_), held_requests_, held_bytes_);
  }
  return true;
}

void Session::submit(PendingIo& io) {
  // While draining, what comes now is never forwarded: the client repeats it elsewhere.
  if (client_stalled_ || shared_.draining.load(std::memory_order_relaxed)) return;
  io.submitted = true;
  worker_.arrived(io);
}

// The end of a stream that is not read does not show. What its client has given up and repeated by
// another way must not come to the server behind the repetition, and undo what was done since.
bool Session::client_went_unseen(const PendingIo& io) {
  const bool unseen = to_server_.waits() || to_server_.paused();
  return unseen && worker_.now() - io.arrival >= kUnseen &&
         net::has_hung_up(client_.native_handle());
}

void Session::no_longer_held(PendingIo& io) {
  worker_.leave_held_list(io);
  --held_requests_;
  held_bytes_ -= io.message.size();
}

void Session::release(PendingIo& io) {
  if (closing_) return;
  if (io.state == PendingIo::State::excess) return refuse_excess(io);
  if (client_went_unseen(io)) return close("closed by the client");
  if (worker_.now() - io.arrival >= shared_.hold.load(std::memory_order_relaxed)) {
    // Too late: its client may have given up, and a late answer would block its connection.
    ios_.erase(io.key);
    no_longer_held(io);
    refuse_to_client(io.key, io.app);
    worker_.released_too_late(io);
    return;
  }
  conversation_->released(io.key);
  to_server_.inject_borrowed(io.message);
  io.moved = 0;
  io.last_progress = io.sent;
  no_longer_held(io);
  ++outstanding_;
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::refuse(PendingIo& io) {
  ios_.erase(io.key);
  no_longer_held(io);
  refuse_to_client(io.key, io.app);
  worker_.recycle(io);
}

// Its client has too many waiting: it is sent back, so that its connection serves others meanwhile.
void Session::refuse_excess(PendingIo& io) {
  ios_.erase(io.key);
  no_longer_held(io);
  ++shared_.counters.excess_requests;
  send_refusal(io.key);
  worker_.recycle(io);
}

void Session::refuse_to_client(IoKey key, AppId app) {
  ++shared_.counters.requests_refused;
  worker_.dispatcher().count_refused(app);
  send_refusal(key);
}

void Session::send_refusal(IoKey key) {
  to_client_.inject(conversation_->refuse(key));
  if (to_client_.unsent() > worker_.settings().config.limits.held_bytes.count + kUnsentBesides) {
    return close("the client does not take the answers to its requests");
  }
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::flush() {
  flush_pending_ = false;
  if (closing_) return;
  to_server_.flush();
  to_client_.flush();
  const bool go_on = outstanding_ > 0 || !holds_more_than(1, 2);
  if (to_server_.paused() && go_on && !closing_) to_server_.resume();
}

void Session::finished(const FinishedIo& finished) {
  PendingIo* const* const found = ios_.find(finished.key);
  if (found == nullptr) return;
  PendingIo& io = **found;
  if (io.held) {
    ++shared_.counters.framing_errors;
    return close("the data server answered a request that it had not been given");
  }
  ios_.erase(finished.key);
  --outstanding_;
  worker_.ended(io, finished.bytes, finished.failed);
  learn_client_timeout();
}

void Session::stepped(Sender from) {
  const Pump& other = from == Sender::client ? to_client_ : to_server_;
  if (other.waits() && !std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::learn_client_timeout() {
  if (timeout_known_) return;
  const std::optional<Duration> timeout = conversation_->client_timeout();
  if (!timeout) return;
  timeout_known_ = true;
  shared_.learn_client_timeout(*timeout);
}

void Session::lost_framing(Sender from) {
  ++shared_.counters.framing_errors;
  close(fmt::format("the {} sent what is no message: {}",
                    from == Sender::client ? "client" : "data server", conversation_->problem()));
}

void Session::source_ended(Sender from, std::error_code error) {
  const char* const who = from == Sender::client ? "client" : "data server";
  close(error ? fmt::format("{}: {}", who, error.message()) : fmt::format("closed by the {}", who));
}

void Session::sink_failed(Sender from, std::error_code error) {
  close(fmt::format("{}: {}", from == Sender::client ? "data server" : "client", error.message()));
}

void Session::sink_moved(Sender from) {
  if (from != Sender::server || !std::exchange(client_stalled_, false)) return;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held && !io->submitted) submit(*io);
  });
}

void Session::check_time(TimePoint now) {
  if (closing_) return;
  learn_client_timeout();
  check_hang_up(now);
  check_client_stall(now);
  check_server_stall(now);
  check_service_time(now);
  if (shared_.draining.load(std::memory_order_relaxed)) check_drain();
  update_byte_counters();
}

// The end of a stream that is not read shows nowhere else: behind a held write stand its data.
void Session::check_hang_up(TimePoint now) {
  if (!to_server_.waits() && !to_server_.paused()) return;
  if (now - hang_up_checked_ < kHangUpInterval) return;
  hang_up_checked_ = now;
  if (net::has_hung_up(client_.native_handle())) close("closed by the client");
}

// A slot is for a request that the data server works on. A client that takes no data makes the
// server wait, so its requests give their slots to others until it reads again.
void Session::check_client_stall(TimePoint now) {
  const std::optional<TimePoint> since = to_client_.blocked_since();
  if (client_stalled_ || !since || now - *since < worker_.settings().config.timeouts.client_stall)
    return;
  client_stalled_ = true;
  ++shared_.counters.client_stalls;
  std::size_t given_up = 0;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held) {
      if (worker_.dispatcher().take_back(*io, now)) io->submitted = false;
    } else {
      given_up += worker_.dispatcher().give_up_slot(*io, now) ? 1 : 0;
    }
  });
  shared_.counters.slots_given_up += given_up;
  worker_.slots_changed();
  spdlog::warn("client {} takes no data: {} of its requests give up their slots until it does",
               net::to_string(client_endpoint_), given_up);
}

// A request that was let go could arrive at the server after its client gave up: when the upstream
// connection is blocked, or when the client leaves the message before it half sent.
void Session::check_server_stall(TimePoint now) {
  const Duration most = shared_.server_stall.load(std::memory_order_relaxed);
  const auto too_long = [&](std::optional<TimePoint> since) {
    return since && now - *since >= most;
  };
  if (too_long(to_server_.blocked_since())) {
    ++shared_.counters.server_stalls;
    close("the data server takes no data");
  } else if (too_long(to_server_.waiting_since())) {
    ++shared_.counters.client_stalls;
    close("the client stopped in mid-message with a request of its own behind it");
  }
}

void Session::check_service_time(TimePoint now) {
  if (outstanding_ == 0) return;
  std::vector<PendingIo*> overdue;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held) return;
    const std::uint64_t moved = conversation_->moved(io->key);
    if (std::exchange(io->moved, moved) != moved) io->last_progress = now;
    if (now - io->last_progress >= worker_.settings().config.timeouts.service)
      overdue.push_back(io);
  });
  if (overdue.empty()) return;
  for (PendingIo* io : overdue) {
    (void)worker_.dispatcher().give_up_slot(*io, now);
    conversation_->forget(io->key);
    ios_.erase(io->key);
    worker_.recycle(*io);
    --outstanding_;
  }
  shared_.counters.slots_given_up += overdue.size();
  worker_.slots_changed();
  spdlog::warn("client {}: {} of its requests made no progress for {}: their slots are free again",
               net::to_string(client_endpoint_), overdue.size(),
               to_string(worker_.settings().config.timeouts.service));
}

void Session::check_drain() {
  std::size_t promised = outstanding_;
  ios_.for_each([&](IoKey, PendingIo* io) {
    if (io->held && io->submitted) ++promised;
  });
  const auto is_done = [](const Pump& pump) {
    return !pump.has_output() && !pump.in_mid_message();
  };
  const bool delivered = is_done(to_client_) && is_done(to_server_);
  if (promised == 0 && delivered && conversation_->at_rest()) close("the proxy drains");
}

void Session::update_byte_counters() {
  shared_.counters.bytes_to_server += to_server_.bytes_moved() - counted_to_server_;
  shared_.counters.bytes_to_client += to_client_.bytes_moved() - counted_to_client_;
  counted_to_server_ = to_server_.bytes_moved();
  counted_to_client_ = to_client_.bytes_moved();
}

}  // namespace vpfs::proxy
