#include "proxy/session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "net/connecting.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "protocols/registry.h"
#include "proxy/handover/stream_counts.h"

namespace vpfs::proxy {
namespace {
// At this multiple of limits.held_* further requests are refused at once.
constexpr std::size_t kOverrun = 4;
// At least so many are taken, and twice the depth, those at the data server included.
constexpr std::size_t kLeastTaken = std::size_t{1} << 14U;
// Bytes of the data server's that a pump may keep for a client that takes none.
constexpr std::size_t kUnsentBesides = std::size_t{256} * 1024;
// Larger reads may ask for much more than their file has.
constexpr std::uint64_t kLargeRead = std::uint64_t{64} * 1024;
// A request counts for at most so much until it has moved more. Nothing else shows that it will,
// and a false claim would be a debt of the whole virtual PFS.
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 30;
// After this many refusals the client is not read until the next check_time(). A node with serial
// connections has many of them. Its reads come back at once the first time, and a pause also holds
// up the application whose request takes the connection next.
constexpr std::size_t kMostRefused = 64;
constexpr std::size_t kMostSentBack = 16;

std::uint64_t counted(const IoDescription& description) {
  return std::min(description.bytes, kMostCounted);
}

// The approximate memory of a held request.
std::size_t footprint(const PendingIo& io) {
  return sizeof(PendingIo) + io.message.size();
}
}  // namespace

Session::Session(Worker& worker, net::Descriptor client, net::Descriptor server,
                 const net::Endpoint& client_endpoint)
    : worker_(worker),
      shared_(worker.shared()),
      client_(worker.pump_thread(), std::move(client)),
      server_(worker.pump_thread(), std::move(server)),
      identity_(client_endpoint, shared_, worker.dispatcher(), worker.identifier()),
      conversation_(
          find_protocol(worker.settings().config.protocol)->make_conversation(worker.table_seed())),
      to_server_(*this, worker.pump_thread(), Sender::client, client_, server_),
      to_client_(*this, worker.pump_thread(), Sender::server, server_, client_),
      ios_(worker.table_seed()),
      client_stall_(shared_.stalls, client_endpoint.address()),
      recorded_source_(worker.dispatcher(), ++shared_.connections_numbered, identity_.address()),
      rest_(shared_.keeper.get()) {}

Session::~Session() = default;

void Session::start() {
  client_stall_.begin(worker_.now());
  conversation_->set_peer(worker_.settings().peer_at(identity_.address()));
  for (PumpSocket* const socket : {&client_, &server_}) {
    if (const Result<void> watched = socket->watch(); !watched) close(watched.error().message);
  }
}

ClientStallWatch::Limits Session::stall_limits() const {
  const Timeouts& timeouts = worker_.settings().config.timeouts;
  return {.least_rate = timeouts.client_min_rate, .client_stall = timeouts.client_stall};
}

void Session::close(const std::string& reason) {
  if (std::exchange(closing_, true)) return;
  client_stall_.end(worker_.now());
  packed_ = false;
  const auto level = outstanding_ + held_requests_ > 0 ? spdlog::level::warn : spdlog::level::debug;
  spdlog::log(level, "client {}: connection closed: {} ({} requests held, {} at the data server)",
              net::to_string(identity_.endpoint()), reason, held_requests_, outstanding_);
  to_server_.stop();
  to_client_.stop();
  worker_.close_later(shared_from_this());
}

void Session::give_everything_back() {
  std::vector<PendingIo*> all;
  ios_.for_each([&](IoKey, PendingIo* io) {
    leave_turns(*io);
    leave_handle(*io);
    if (!io->held) io->moved = conversation_->moved(io->key);
    all.push_back(io);
  });
  worker_.dispatcher().abandon(all, worker_.now());
  for (PendingIo* io : all) worker_.recycle(*io);
  ios_ = FlatTable<PendingIo*>();
  identity_.leave();
  worker_.slots_changed();
  update_byte_counters();
  // Another process that does not go on with the connection may have the sockets all the same.
  if (!departed_) {
    for (const int socket : descriptors()) end_stream(socket);
  }
  rest_.forget(worker_.now());
  client_.close();
  server_.close();
}

Step Session::next(Sender from, std::span<const std::byte> bytes) {
  if (settings_number_ != worker_.settings_number()) take_on_settings();
  return conversation_->next(from, bytes);
}

// A reload may change which requests are scheduled. A session takes the new settings on with its
// next bytes, so the time of a reload does not depend on the number of sessions.
void Session::take_on_settings() {
  settings_number_ = worker_.settings_number();
  conversation_->hold_metadata(worker_.settings().config.schedule_metadata);
}

void Session::join_client() {
  const std::optional<std::uint32_t> node = conversation_->serial_client();
  if (!node) return;
  std::optional<std::uint16_t> server_port;
  if (!shared_.upstream) {
    // A client has a set of connections to each data server.
    const Result<net::Endpoint> server = net::remote_endpoint(server_.native_handle());
    server_port = server ? server->port() : 0;
  }
  identity_.join(node, server_port);
}

void Session::hold(std::span<const std::byte> message) {
  hold(message, worker_.now(), false);
}

void Session::hold(std::span<const std::byte> message, TimePoint since, bool again) {
  const IoDescription& description = conversation_->held();
  // The conversation forgets a read at the header of its last data, the session at its last byte.
  if (ios_.find(description.key) != nullptr) {
    ++shared_.counters.framing_errors;
    return close("the client reused the tag of an I/O that is still under way");
  }
  // The client sends again, and it has taken all that there was for it.
  if (!to_client_.output().blocked_since()) (void)client_stall_.moves_again();
  const TimePoint now = worker_.now();
  const auto hint = [this](const std::string& name) { return conversation_->held_hint(name); };
  const Belonging who = identity_.identify(description, hint, worker_.settings(), now);
  if (!again && holds_far_too_much()) {
    ++shared_.counters.requests_refused;
    worker_.dispatcher().count_refused(who.place, description.kind, {counted(description)}, now);
    return send_refusal(description.key);
  }
  PendingIo& io = worker_.make_held(since);
  io.arrived_in = again ? 0 : worker_.event();  // its client may be gone since
  if (identity_.id() == stage::kNoClient) join_client();
  io.session = this;
  io.key = description.key;
  io.client_address = identity_.address();
  io.set_place(who.place);
  io.traffic_class = who.traffic_class;
  io.kind = description.kind;
  io.device = description.device.value_or(0);
  io.client = identity_.id();
  io.fingerprint = description.fingerprint;
  io.handle = description.handle;
  if (const std::uint32_t recording = worker_.dispatcher().recording(); recording != 0) {
    io.source = recorded_source_.of(description, recording, hint(std::string(stage::kJobHint)));
  }
  estimate(io, description);
  io.message.assign(message.begin(), message.end());
  ios_.insert(io.key, &io);
  ++held_requests_;
  held_bytes_ += footprint(io);
  if (holds_more_than(1, 1) && outstanding_ == 0) to_server_.pause();
  if (again) worker_.dispatcher().readmit(io, now);
  submit(io);
}

// Sets the size: exact where the protocol shows it or the file's size is known, otherwise an
// estimate of the dispatcher's from similar reads.
void Session::estimate(PendingIo& io, const IoDescription& description) {
  io.asked = io.size = Bytes{counted(description)};
  io.size_is_estimated = description.may_be_short && description.bytes > kLargeRead;
  if (io.size_is_estimated && description.file != 0) {
    if (const auto size = shared_.file_sizes.find(description.file)) {
      io.size = Bytes{std::min(conversation_->held_bytes_of(*size), io.asked.count)};
      io.size_is_estimated = false;
    }
  }
  io.cost = worker_.settings().cost_model.cost(io.kind, io.size);
}

// Whether the session holds limits.held_* x times / divisor or more.
bool Session::holds_more_than(std::size_t times, std::size_t divisor) const {
  const Limits& limits = worker_.settings().config.limits;
  return held_requests_ * divisor >= limits.held_requests * times ||
         held_bytes_ * divisor >= limits.held_bytes.count * times;
}

// The data of started writes may come after held requests. So the stream is read as long as the
// data server works for this client, and requests beyond a bound are refused: to wait for room
// would be a deadlock.
bool Session::holds_far_too_much() {
  // No depth bounds those that need no slot.
  const Config& config = worker_.settings().config;
  const std::size_t most = std::max({kOverrun * config.limits.held_requests, kLeastTaken,
                                     std::size_t{2} * config.scheduler.depth.requests});
  if (ios_.size() < most && !holds_more_than(kOverrun, 1)) return false;
  if (!std::exchange(overrun_told_, true)) {
    spdlog::warn(
        "client {}: {} requests ({} bytes) are held, {} are at the data server: further ones are "
        "refused",
        net::to_string(identity_.endpoint()), held_requests_, held_bytes_, outstanding_);
  }
  return true;
}

void Session::submit(PendingIo& io) {
  if (waits_for_handle(io)) {
    leave_turns(io);  // others must not wait for one that waits here
    return park(io, stage::SlowClient::of_its_handle);
  }
  if (!may_submit(io)) return park(io, stage::SlowClient::its_own);
  io.parked = false;
  io.on_probation = (client_stall_.on_probation() || io.has_turn) && !needs_no_slot(io);
  if (io.on_probation) ++on_their_way_;
  io.submitted = true;
  worker_.arrived(io);
}

// Keeps the request back, not submitted, because of that client or because the proxy drains.
void Session::park(PendingIo& io, stage::SlowClient whose) {
  (whose == stage::SlowClient::of_its_handle ? behind_handles_ : parked_).push_back(io.key);
  if (shared_.draining.load(std::memory_order_relaxed)) whose = stage::SlowClient::none;
  if (std::exchange(io.parked, true) && io.parked_for == whose) return;
  io.parked_for = whose;
  worker_.parked(io, whose);
}

bool Session::needs_no_slot(const PendingIo& io) const {
  return io.exempt || worker_.dispatcher().bypassed();
}

bool Session::may_submit(PendingIo& io) {
  // A draining proxy forwards no new request: the client repeats it elsewhere.
  if (shared_.draining.load(std::memory_order_relaxed)) return false;
  if (needs_no_slot(io)) {
    leave_turns(io);
    return true;
  }
  if (client_stall_.stalled()) return false;
  const Duration stall = stall_limits().client_stall;
  const auto standing = client_stall_.meet(io.virtual_pfs(), stall, worker_.now());
  if (client_stall_.on_probation() && on_their_way_ > 0) {
    leave_turns(io);  // others must not wait for one that waits here
    return false;
  }
  if (standing == StallBudgets::Standing::slow) {
    return client_stall_.take_turn(io, stall, worker_.now());
  }
  leave_turns(io);
  return true;
}

PendingIo* Session::parked_io(IoKey key) {
  PendingIo* const* const found = ios_.find(key);
  return found != nullptr && (*found)->held && !(*found)->submitted ? *found : nullptr;
}

// Submits parked requests in their order, up to the first that may not go.
void Session::submit_parked() {
  std::size_t submitted = 0;
  while (submitted < parked_.size()) {
    PendingIo* const io = parked_io(parked_[submitted]);
    if (io != nullptr && !may_submit(*io)) break;
    ++submitted;
    if (io != nullptr) submit(*io);
  }
  // An empty one keeps no memory.
  if (submitted == parked_.size()) {
    (void)std::exchange(parked_, {});
  } else {
    parked_.erase(parked_.begin(), parked_.begin() + static_cast<std::ptrdiff_t>(submitted));
  }
}

// Submits all parked requests that may go. Applications do not wait for each other.
void Session::submit_all_parked() {
  const std::vector<IoKey> parked = std::exchange(parked_, {});
  for (const IoKey key : parked) {
    if (PendingIo* const io = parked_io(key)) submit(*io);  // parks it again if it may not go
  }
}

// The end of a stream that is not read does not show; it is not read while the server takes nothing
// either. A client may have given a request up and repeated it on another connection. The abandoned
// request must not arrive after its retry.
bool Session::client_went_unseen(const PendingIo& io) {
  const bool unseen = to_server_.waits() || to_server_.paused() || to_server_.waits_for_sink();
  return unseen && io.arrived_in != worker_.event() && net::has_hung_up(client_.native_handle());
}

void Session::leave_turns(PendingIo& io) {
  if (!io.waits_for_turn && !io.has_turn) return;
  client_stall_.leave_turns(io, stall_limits().client_stall, worker_.now());
}

void Session::forget(PendingIo& io) {
  ios_.erase(io.key);
  leave_turns(io);
  leave_handle(io);
  if (std::exchange(io.on_probation, false)) --on_their_way_;
}

void Session::no_longer_held(PendingIo& io) {
  worker_.leave_held_list(io);
  --held_requests_;
  held_bytes_ -= footprint(io);
}

void Session::release(PendingIo& io) {
  if (closing_) return;
  if (io.state == PendingIo::State::excess) return refuse_excess(io);
  if (client_went_unseen(io)) return close("closed by the client");
  if (worker_.now() - io.arrival >= shared_.hold.load(std::memory_order_relaxed)) {
    // The client may have given up, and a late answer would block its connection.
    forget(io);
    no_longer_held(io);
    ++shared_.counters.requests_refused;
    send_refusal(io.key);
    worker_.released_too_late(io);
    return;
  }
  conversation_->released(io.key);
  to_server_.inject_borrowed(io.message);
  io.told_moved = io.asked.count;
  io.last_progress = io.sent;
  io.behind_message = to_server_.in_mid_message();
  no_longer_held(io);
  ++outstanding_;
  if (io.on_probation) give_slots_up({&io});
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::refuse(PendingIo& io) {
  forget(io);
  no_longer_held(io);
  ++shared_.counters.requests_refused;
  send_refusal(io.key);
  worker_.recycle(io);
}

// The client has too many held requests. The refusal frees this connection for others.
void Session::refuse_excess(PendingIo& io) {
  forget(io);
  no_longer_held(io);
  ++shared_.counters.excess_requests;
  send_refusal(io.key);
  worker_.recycle(io);
}

// A client that is refused too often is not read for a moment. The pause is short, because the data
// of started writes may come after the requests.
void Session::send_refusal(IoKey key) {
  const std::size_t most = identity_.id() == stage::kNoClient ? kMostRefused : kMostSentBack;
  if (++refused_ >= most && !std::exchange(refusing_, true)) to_server_.pause();
  to_client_.inject(conversation_->refuse(key));
  if (to_client_.output().unsent() >
      worker_.settings().config.limits.held_bytes.count + kUnsentBesides) {
    return close("the client does not take the answers to its requests");
  }
  if (!std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::flush() {
  flush_pending_ = false;
  if (closing_ || packed_) return;
  to_server_.flush();
  to_client_.flush();
  const bool go_on = !refusing_ && (outstanding_ > 0 || !holds_more_than(1, 2));
  if (to_server_.paused() && go_on && !closing_) to_server_.resume();
}

void Session::finished(const FinishedIo& finished) {
  PendingIo* const* const found = ios_.find(finished.key);
  if (found == nullptr) return;
  PendingIo& io = **found;
  if (io.held) {
    ++shared_.counters.framing_errors;
    return close("the data server answered a request that it has not received");
  }
  forget(io);
  --outstanding_;
  if (io.gave_slot_up) {
    shared_.counters.late_bytes += finished.bytes - std::min(finished.bytes, io.moved_in_time);
  }
  const bool may_grow = io.kind == IoKind::write;
  if (finished.file != 0 && (may_grow || io.asked.count > kLargeRead)) learn_size(finished);
  worker_.ended(io, finished.bytes, finished.failed);
  if (!parked_.empty()) submit_parked();
  learn_client_timeout();
}

void Session::learn_size(const FinishedIo& finished) {
  if (finished.file_size) {
    shared_.file_sizes.change(finished.file,
                              [&](std::uint64_t& size) { size = *finished.file_size; });
  } else {
    shared_.file_sizes.erase(finished.file);
  }
}

void Session::stepped(Sender from) {
  const Pump& other = from == Sender::client ? to_client_ : to_server_;
  if (other.waits() && !std::exchange(flush_pending_, true)) worker_.flush_later(*this);
}

void Session::learn_client_timeout() {
  if (timeout_known_) return;
  const std::optional<ClientTimeout> timeout = conversation_->client_timeout();
  if (!timeout) return;
  timeout_known_ = true;
  shared_.learn_client_timeout(*timeout);
}

void Session::lost_framing(Sender from) {
  ++shared_.counters.framing_errors;
  close(fmt::format("the {} sent an invalid message: {}",
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
  if (from == Sender::server && client_stall_.moves_again()) submit_parked();
}

}  // namespace vpfs::proxy
