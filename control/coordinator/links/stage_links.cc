#include "control/coordinator/links/stage_links.h"

#include <algorithm>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/result.h"
#include "control/coordinator/links/dial_stream.h"
#include "control/coordinator/links/port_reservation.h"
#include "control/coordinator/links/stage_peer.h"
#include "net/endpoint.h"
#include "net/ready_stream.h"
#include "net/socket_options.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::make_error;

constexpr Duration kBetweenComplaints = std::chrono::seconds(10);
// Requests that a stage has not answered, given up or not: with more a port stops reading, cycles
// too.
constexpr std::size_t kMostAsked = 6;
constexpr Duration kSweep = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<StageLinks>> StageLinks::open(asio::io_context& context, const Clock& clock,
                                                     const Config& config, StageHandler& handler,
                                                     const Limits& limits) {
  std::unique_ptr<StageLinks> links(new StageLinks(context, clock, config, handler, limits));
  auto set = net::ReadySet::make(context);
  VPFS_TRY(set);
  links->set_ = std::move(*set);
  links->room_ = std::make_unique<LinkRoom>(*links->set_);
  if (config.dials_tcp()) {
    auto tls = net::TlsContext::load(config.dialling, net::TlsSide::client);
    if (!tls) return fail("stages.certificate: " + tls.error().message, tls.error().code);
    links->dialling_ = std::move(*tls);
  }
  for (const DialledStage& stage : config.dial) {
    const bool is_named = !stage.name.empty();
    links->dialled_.push_back({.config = stage,
                               .key = is_named ? stage.name : control::to_string(stage.address),
                               .timer = asio::steady_timer(context),
                               .pause = limits.least_pause,
                               .peer = nullptr,
                               .problem = "was not dialled yet"});
  }
  VPFS_TRY(links->listen(config.listen));
  return links;
}

StageLinks::StageLinks(asio::io_context& context, const Clock& clock, const Config& config,
                       StageHandler& handler, const Limits& limits)
    : context_(context),
      clock_(clock),
      config_(config),
      handler_(handler),
      limits_(limits),
      sweep_timer_(context) {}

StageLinks::~StageLinks() {
  stop();
}

Result<void> StageLinks::listen(const control::PortConfig& config) {
  if (!config.enabled()) return {};
  const auto problem = [this](const char* key, const Error& error) {
    return fail(fmt::format("{}.{}: {}", config_.listen_key, key, error.message), error.code);
  };
  auto access = control::resolve_access(config, {}, config_.listen_key);
  if (!access) return fail(control::describe(access.error()));
  access_ = std::move(*access);
  if (!config.tcp.empty()) {
    if (!limits_.plain_tcp) {
      auto tls =
          net::TlsContext::load({config.certificate, config.key, config.ca}, net::TlsSide::server);
      if (!tls) return problem("certificate", tls.error());
      accepting_ = std::move(*tls);
    }
    const auto endpoint = net::resolve_endpoint(config.tcp);
    if (!endpoint) return problem("tcp", endpoint.error());
    net::Descriptor reserved;
    if (config_.listen_is_reserved) {
      auto socket = listen_on_reserved(*endpoint);
      if (!socket) return problem("tcp", socket.error());
      reserved = std::move(*socket);
    }
    auto listener = net::Listener::open(context_, *endpoint, std::move(reserved));
    if (!listener) return problem("tcp", listener.error());
    tcp_listener_.emplace(std::move(*listener));
  }
  if (!config.socket.empty()) {
    auto listener =
        net::UnixListener::open(context_, config.socket, config.mode, access_.socket_gid);
    if (!listener) return problem("socket", listener.error());
    unix_listener_.emplace(std::move(*listener));
  }
  return {};
}

std::optional<net::Endpoint> StageLinks::tcp_endpoint() const {
  return tcp_listener_ ? std::optional(tcp_listener_->local_endpoint()) : std::nullopt;
}

void StageLinks::start() {
  if (unix_listener_) {
    unix_listener_->start([this](net::UnixSocket socket) { accept_unix(std::move(socket)); });
  }
  if (tcp_listener_) {
    tcp_listener_->start([this](net::Socket socket) { accept_tcp(std::move(socket)); });
  }
  is_started_ = true;
  for (Dialled& stage : dialled_) {
    if (stage.is_served) dial(stage);
  }
  sweep();
}

void StageLinks::serve(WhyNot why_not) {
  why_not_ = std::move(why_not);
  for (Dialled& stage : dialled_) {
    serve(stage, why_not_ == nullptr || !why_not_(stage.key, Comes::dialled));
  }
  if (why_not_ == nullptr) return;
  std::vector<std::pair<Peer*, control::Error>> others;
  for (const auto& [key, peer] : peers_) {
    if (peer->dialled != nullptr || peer->state != Peer::State::joined) continue;
    if (auto why = why_not_(peer->hello.name, Comes::by_itself))
      others.emplace_back(peer.get(), std::move(*why));
  }
  for (const auto& [peer, why] : others) send_away(*peer, 0, why);
}

void StageLinks::serve(Dialled& stage, bool is_served) {
  stage.is_served = is_served;
  stage.pause = limits_.least_pause;
  if (!is_served) {
    stage.timer.cancel();
    if (stage.peer != nullptr) drop(*stage.peer, "");
  } else if (is_started_ && stage.peer == nullptr && !stage.is_dialling) {
    dial(stage);
  }
}

void StageLinks::stop() {
  if (std::exchange(is_stopped_, true)) return;
  unix_listener_.reset();
  tcp_listener_.reset();
  sweep_timer_.cancel();
  for (Dialled& stage : dialled_) stage.timer.cancel();
  for (auto& [key, peer] : peers_) peer->link.close();
  if (set_ != nullptr) set_->close();
}

StageLinks::Peer& StageLinks::add(std::unique_ptr<net::ReadyStream> stream) {
  // What is lost is sent again after 200 ms at the earliest, and then for this long.
  net::bound_delivery(stream->descriptor(), config_.transit / 2);
  auto made = std::make_unique<Peer>(std::move(stream), *room_, *this);
  Peer& peer = *made;
  peer.since = clock_.now();
  peer.place = unjoined_.insert(unjoined_.end(), &peer);
  peers_.emplace(&peer, std::move(made));
  return peer;
}

bool StageLinks::make_place() {
  if (peers_.size() < limits_.connections) return true;
  ++counters_.refused;
  const auto oldest =
      std::ranges::find_if(unjoined_, [](const Peer* each) { return each->dialled == nullptr; });
  if (oldest == unjoined_.end()) {
    complain(fmt::format("there are {} stages: another one is refused", peers_.size()));
    return false;
  }
  complain(fmt::format("there are {} connections: {}, which has not said Hello, leaves its place",
                       peers_.size(), (*oldest)->from));
  drop(**oldest, "others need its place");
  return true;
}

void StageLinks::accept_unix(net::UnixSocket socket) {
  ++counters_.accepted;
  if (!make_place()) return;
  const auto who = net::peer_credentials(socket.native_handle());
  if (!who) return complain(who.error().message);
  Peer& peer = add(net::make_ready_stream(net::StreamSocket(std::move(socket))));
  peer.from = fmt::format("uid {}", who->uid);
  peer.identity = {.uid = who->uid, .gids = who->gids, .certificate = {}, .from = "unix"};
  peer.link.open();
}

void StageLinks::accept_tcp(net::Socket socket) {
  ++counters_.accepted;
  if (!make_place()) return;
  std::error_code error;
  const net::Endpoint from = net::unmapped(socket.remote_endpoint(error));
  if (error) return;
  net::keep_alive(socket.native_handle());
  net::StreamSocket stream(std::move(socket));
  Peer& peer = add(limits_.plain_tcp ? net::make_ready_stream(std::move(stream))
                                     : net::make_ready_tls_stream(std::move(stream), accepting_,
                                                                  net::TlsSide::server));
  peer.from = from.address().to_string();
  peer.identity.from = peer.from;
  peer.link.open();
}

void StageLinks::dial(Dialled& stage) {
  stage.timer.cancel();
  stage.is_dialling = true;
  asio::co_spawn(context_, connect(stage), asio::detached);
}

net::Task<> StageLinks::connect(Dialled& stage) {
  DialTarget target = {.address = stage.config.address, .peer = "proxy", .key = "control.socket"};
  DialledStream stream = co_await dial_stream(std::move(target), limits_.connect, dialling_);
  stage.is_dialling = false;
  if (is_stopped_ || !stage.is_served) co_return;
  if (!stream) {
    dial_later(stage, stream.error());
    co_return;
  }
  Peer& peer = add(std::move(*stream));
  peer.dialled = &stage;
  peer.from = control::to_string(stage.config.address);
  stage.peer = &peer;
  peer.link.open();
}

void StageLinks::dial_later(Dialled& stage, const std::string& problem) {
  stage.peer = nullptr;
  if (is_stopped_ || !stage.is_served) return;
  if (stage.problem != problem) {
    spdlog::warn("stage {}: {}", control::to_string(stage.config.address), problem);
  }
  stage.problem = problem;
  stage.timer.expires_after(stage.pause);
  stage.pause = std::min(2 * stage.pause, limits_.most_pause);
  stage.timer.async_wait([this, &stage](std::error_code error) {
    if (!error && !is_stopped_ && !stage.is_dialling && stage.peer == nullptr) dial(stage);
  });
}

void StageLinks::received(Peer& peer, std::span<const std::byte> frame) {
  if (peer.state == Peer::State::parting) return;
  counters_.received_bytes += frame.size() + control::kLengthSize;
  Envelope& envelope = memory_.begin();
  if (!control::decode(frame, envelope)) {
    drop(peer, "not the control protocol: a frame that is not a message");
  } else if (peer.state == Peer::State::joined) {
    handle(peer, envelope);
  } else {
    greet(peer, envelope);
  }
  memory_.end(control::MessageMemory::kUsual);
}

void StageLinks::handle(Peer& peer, const Envelope& envelope) {
  const auto place = envelope.answer()
                         ? std::ranges::find(peer.asked, envelope.id(), &Asked::number)
                         : peer.asked.end();
  if (place != peer.asked.end()) {
    const Done done = std::move(place->done);
    peer.asked.erase(place);
    if (peer.asked.empty()) asked_.erase(&peer);
    bound_frames(peer, clock_.now());
    if (done != nullptr) done(envelope);
    return;
  }
  if (++peer.unasked > limits_.unasked) return drop(peer, "it sent an answer to no request");
  switch (envelope.body_case()) {
    case Envelope::kFlows:
      return handler_.announced(peer.stage, envelope.flows());
    case Envelope::kReport:
      handler_.reported(peer.stage, envelope.report());
      return look_who_leads(peer, envelope.report().refused());
    default:
      break;
  }
  if (envelope.has_error() && envelope.id() == peer.cycle && peer.cycle != 0) {
    handler_.refused_cycle(peer.stage, peer.sequence, envelope.error());
    return look_who_leads(peer, envelope.error());
  }
  if (envelope.answer()) return;  // to what was given up
  Envelope answer;
  *answer.mutable_error() =
      make_error(control::Error::UNSUPPORTED, "", "a stage asks its coordinator for nothing");
  answer.set_id(envelope.id());
  answer.set_answer(true);
  if (envelope.id() != 0) send(peer, answer);
}

void StageLinks::look_who_leads(Peer& peer, const control::Error& refused) {
  if (refused.code() != control::Error::OUTDATED) return;
  if (peer.dialled != nullptr) peer.dialled->pause = limits_.most_pause;
  drop(peer, "another coordinator leads it: " + control::describe(refused));
}

void StageLinks::drop(Peer& peer, const std::string& why) {
  peer.link.close();
  ended(peer, why);
}

void StageLinks::lost(Peer& peer, const std::string& why) {
  if (peer.state == Peer::State::joined) coming_back_.left(peer.hello.name, clock_.now());
  ended(peer, why);
}

void StageLinks::wait_for(const std::string& name, Back back) {
  coming_back_.wait(name, clock_.now(), std::move(back));
}

void StageLinks::end_waits(std::vector<Back> waiting) {
  for (Back& each : waiting) asio::post(context_, std::move(each));
}

void StageLinks::ended(Peer& ended, const std::string& why) {
  const auto place = peers_.find(&ended);
  if (place == peers_.end()) return;
  std::unique_ptr<Peer> peer = std::move(place->second);
  peers_.erase(place);
  const bool had_joined = peer->state == Peer::State::joined;
  peer->state = Peer::State::parting;
  if (had_joined) {
    if (!why.empty()) spdlog::warn("stage {}: {}", peer->hello.name, why);
    asked_.erase(&ended);
    fail_asked(std::exchange(peer->asked, {}), why.empty() ? "another coordinator leads it" : why);
    handler_.left(peer->stage);
    by_stage_[peer->stage.index] = nullptr;
  } else {
    unjoined_.erase(peer->place);
  }
  if (peer->dialled != nullptr) dial_later(*peer->dialled, why);
  // The caller may be the link itself.
  if (gone_.empty()) asio::post(context_, [this] { gone_.clear(); });
  gone_.push_back(std::move(peer));
}

void StageLinks::fail_asked(std::vector<Asked> asked, const std::string& why) {
  for (Asked& each : asked) {
    if (each.done == nullptr) continue;
    asio::post(context_, [done = std::move(each.done), why] {
      Envelope answer;
      *answer.mutable_error() = make_error(control::Error::UNAVAILABLE, kNotReached, why);
      done(answer);
    });
  }
}

void StageLinks::send(Peer& peer, const Envelope& envelope) {
  out_.clear();
  if (!control::append_frame(envelope, control::kMostAnswer, out_)) return;
  counters_.sent_bytes += out_.size();
  peer.link.send(out_);
}

StageLinks::Peer& StageLinks::peer(allocation::StageId stage) {
  VPFS_ASSERT(stage.index < by_stage_.size() && by_stage_[stage.index] != nullptr);
  return *by_stage_[stage.index];
}

const StageHello& StageLinks::hello(allocation::StageId stage) const {
  return const_cast<StageLinks*>(this)->peer(stage).hello;
}

bool StageLinks::was_sent_cycle(allocation::StageId stage) {
  return peer(stage).cycle != 0;
}

void StageLinks::prepare(allocation::StageId stage) const {
  if (stage.index < by_stage_.size()) prefetch<6>(by_stage_[stage.index]);
}

StageLinks::Peer* StageLinks::of_before(allocation::StageId stage, std::uint64_t joins) const {
  Peer* const found = stage.index < by_stage_.size() ? by_stage_[stage.index] : nullptr;
  return found != nullptr && found->joined_as < joins ? found : nullptr;
}

bool StageLinks::send_cycle(allocation::StageId stage, Envelope& cycle, std::uint64_t joins) {
  Peer* const found = of_before(stage, joins);
  if (found == nullptr) return false;
  Peer& to = *found;
  to.cycle = ++to.last_number;
  to.sequence = cycle.cycle().sequence();
  to.unasked = 0;
  cycle.set_id(to.cycle);
  send(to, cycle);
  return true;
}

void StageLinks::ask(allocation::StageId stage, Envelope& request, Duration patience, Done done) {
  Peer& to = peer(stage);
  if (to.asked.size() >= kMostAsked) {
    std::vector<Asked> refused;
    refused.push_back({.done = std::move(done)});
    return fail_asked(std::move(refused), "it has not answered what it was asked before");
  }
  request.set_id(++to.last_number);
  const TimePoint now = clock_.now();
  // A stage only acknowledges what a coordinator itself tells it.
  const bool is_told = request.has_site() || request.has_member_view();
  asked_.insert(&to);
  to.asked.push_back({.number = request.id(),
                      .due = now + patience,
                      .done = std::move(done),
                      .may_be_long = !is_told});
  bound_frames(to, now);
  send(to, request);
}

void StageLinks::disconnect(allocation::StageId stage, std::uint64_t joins, const char* why) {
  if (const Peer* const leaving = of_before(stage, joins)) drop_later(*leaving, why);
}

void StageLinks::drop_later(const Peer& leaving, std::string why) {
  asio::post(context_, [this, leaving = &leaving, since = leaving.since, why = std::move(why)] {
    const auto place = peers_.find(leaving);
    if (place != peers_.end() && place->second->since == since) drop(*place->second, why);
  });
}

void StageLinks::disconnect_if(const std::function<bool(const StageHello&)>& is_meant,
                               const std::string& why) {
  for (const auto& [key, peer] : peers_) {
    if (peer->state == Peer::State::joined && is_meant(peer->hello)) drop_later(*peer, why);
  }
}

std::vector<AbsentStage> StageLinks::absent() const {
  std::vector<AbsentStage> absent;
  for (const Dialled& each : dialled_) {
    if (!each.is_served) continue;
    if (each.peer != nullptr && each.peer->state == Peer::State::joined) continue;
    absent.push_back({.name = each.config.name.empty() ? each.last_name : each.config.name,
                      .address = control::to_string(each.config.address),
                      .problem = each.problem});
  }
  return absent;
}

void StageLinks::complain(const std::string& text) {
  const TimePoint now = clock_.now();
  if (complained_at_ && now - *complained_at_ < kBetweenComplaints) {
    ++not_complained_;
    return;
  }
  complained_at_ = now;
  const std::uint64_t more = std::exchange(not_complained_, 0);
  spdlog::warn("stages: {}{}", text, more == 0 ? "" : fmt::format(" ({} more before)", more));
}

// Closes connections without Hello, and gives requests up.
void StageLinks::sweep() {
  const TimePoint now = clock_.now();
  while (!unjoined_.empty() && now - unjoined_.front()->since > limits_.hello) {
    ++counters_.refused;
    drop(*unjoined_.front(), "it did not say Hello in time");
  }
  for (Peer* each : asked_) give_up_due(*each, now);
  end_waits(coming_back_.give_up(now));
  sweep_timer_.expires_after(kSweep);
  sweep_timer_.async_wait([this](std::error_code stopped) {
    if (!stopped && !is_stopped_) sweep();
  });
}

void StageLinks::give_up_due(Peer& peer, TimePoint now) {
  std::vector<Asked> due;
  for (Asked& each : peer.asked) {
    if (each.done != nullptr && each.due <= now) {
      due.push_back({.done = std::exchange(each.done, nullptr)});
    }
  }
  fail_asked(std::move(due), "it did not answer in time");
  bound_frames(peer, now);
}

// A stage that never answers must not keep the memory that a long answer takes.
void StageLinks::bound_frames(Peer& peer, TimePoint now) {
  const bool is_long = std::ranges::any_of(peer.asked, [&](const Asked& each) {
    return each.may_be_long && now < each.due + limits_.late_answer;
  });
  peer.link.allow(is_long ? limits_.frame_of_answers : limits_.frame_of_stages);
}

}  // namespace vpfs::coordinator
