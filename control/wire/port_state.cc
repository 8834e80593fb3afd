#include "control/wire/port_state.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/wire/accounts.h"
#include "control/wire/command_text.h"
#include "control/wire/leader/address_list.h"
#include "control/wire/requests.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "net/start_thread.h"

namespace vpfs::control {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBetweenComplaints = 10s;
constexpr Duration kNamesKept = 1min;
constexpr std::size_t kMostNames = 4096;
constexpr Duration kStopPatience = 500ms;
// For what was accepted in the last moment before another process took over.
constexpr Duration kLeavePatience = 100ms;
// How long a connection waits for the name of its user.
constexpr Duration kNamePatience = 400ms;
constexpr std::size_t kMostLookups = 8;  // that hang included
// Listeners in a hand-over.
constexpr const char* kSocketName = "control.socket";
constexpr const char* kSocketLockName = "control.socket.lock";
constexpr const char* kTcpName = "control.tcp";

std::string result_text(const Envelope& answer) {
  if (!answer.has_error()) return "ok";
  return fmt::format("{}: {}", Error::Code_Name(answer.error().code()), describe(answer.error()));
}

}  // namespace

PortState::PortState(Owner& owner, const Clock& clock, const PortLimits& limits, Versions versions)
    : owner_(owner),
      clock_(clock),
      limits_(limits),
      versions_(versions),
      audit_(std::make_shared<Audit>(clock)),
      work_(context_.get_executor()),
      sweep_timer_(context_),
      stop_timer_(context_),
      mailbox_(std::make_shared<Mailbox>([this] { asio::post(context_, [this] { deliver(); }); })),
      dialler_(*this),
      names_(std::make_shared<NameService>()) {
  names_->port = this;
}

PortState::~PortState() {
  mailbox_->close();
  const std::lock_guard lock(names_->mutex);
  names_->port = nullptr;
}

Result<PortState::Settings> PortState::load(const PortConfig& config, const Accounts& accounts) {
  Settings settings;
  auto access = resolve_access(config, accounts);
  if (!access) return fail(fmt::format("{}: {}", access.error().place(), access.error().text()));
  settings.access = std::move(*access);
  const net::TlsFiles files = {config.certificate, config.key, config.ca};
  if (config.dials()) {
    auto addresses = parse_addresses(config.coordinators);
    if (!addresses) return fail("control.coordinator: " + addresses.error().message);
    Dialler::Target& target = settings.coordinator.emplace();
    target.addresses = std::move(*addresses);
    if (any_is_tcp(target.addresses)) {
      auto tls = net::TlsContext::load(files, net::TlsSide::client);
      if (!tls) return fail("control: " + tls.error().message, tls.error().code);
      target.tls = std::move(*tls);
    }
  }
  if (!config.tcp.empty()) {
    auto tls = net::TlsContext::load(files, net::TlsSide::server);
    if (!tls) return fail("control: " + tls.error().message, tls.error().code);
    settings.tls = std::move(*tls);
  }
  return settings;
}

Result<void> PortState::open(const PortConfig& config, Settings settings,
                             net::Inherited* inherited) {
  settings_ = std::move(settings);
  const auto problem = [](const char* key, const vpfs::Error& error) {
    return fail(fmt::format("control.{}: {}", key, error.message), error.code);
  };
  if (auto opened = audit_->open(config.audit); !opened) return opened;
  if (!config.tcp.empty()) {
    const auto endpoint = net::resolve_endpoint(config.tcp);
    if (!endpoint) return problem("tcp", endpoint.error());
    auto listener =
        net::Listener::open(context_, *endpoint, net::Inherited::take_from(inherited, kTcpName));
    if (!listener) return problem("tcp", listener.error());
    tcp_listener_.emplace(std::move(*listener));
  }
  if (!config.socket.empty()) {
    net::UnixListener::Handed handed = {
        .socket = net::Inherited::take_from(inherited, kSocketName),
        .lock = net::Inherited::take_from(inherited, kSocketLockName)};
    auto listener = net::UnixListener::open(context_, config.socket, config.mode,
                                            settings_.access.socket_gid, std::move(handed));
    if (!listener) return problem("socket", listener.error());
    unix_listener_.emplace(std::move(*listener));
  }
  return {};
}

void PortState::leave() {
  has_left_ = true;
  if (unix_listener_) unix_listener_->leave();
  unix_listener_.reset();
  tcp_listener_.reset();
  dialler_.stop();
  const auto connections = connections_;
  for (const auto& [number, connection] : connections) connection->close_if_coordinator();
  stop_timer_.expires_after(kLeavePatience);
  stop_timer_.async_wait([this](std::error_code) { stop(); });
  if (all_closed()) stop_timer_.cancel();
}

std::vector<std::pair<std::string, int>> PortState::descriptors() const {
  std::vector<std::pair<std::string, int>> all;
  if (unix_listener_) {
    all.emplace_back(kSocketName, unix_listener_->native_handle());
    all.emplace_back(kSocketLockName, unix_listener_->lock_handle());
  }
  if (tcp_listener_) all.emplace_back(kTcpName, tcp_listener_->native_handle());
  return all;
}

std::optional<net::Endpoint> PortState::tcp_endpoint() const {
  if (!tcp_listener_) return std::nullopt;
  return tcp_listener_->local_endpoint();
}

void PortState::run() {
  if (unix_listener_) {
    unix_listener_->start([this](net::UnixSocket socket) { accept_unix(std::move(socket)); });
  }
  if (tcp_listener_) {
    tcp_listener_->start([this](net::Socket socket) { accept_tcp(std::move(socket)); });
  }
  dialler_.use(settings_.coordinator);
  sweep();
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception& problem) {
      // An exception of a library, such as for want of memory, must not end the stage.
      spdlog::error("control port: {}", problem.what());
    }
  }
}

void PortState::stop() {
  if (std::exchange(stopping_, true)) return;
  // Acceptors are closed before their context is destroyed.
  unix_listener_.reset();
  tcp_listener_.reset();
  sweep_timer_.cancel();
  deliver();
  mailbox_->close();
  const auto connections = connections_;
  for (const auto& [number, connection] : connections) connection->close_when_sent();
  dialler_.stop();
  stop_timer_.expires_after(kStopPatience);
  stop_timer_.async_wait([this](std::error_code) {
    const auto rest = connections_;
    for (const auto& [number, connection] : rest) connection->close();
    if (dialler_.connection()) dialler_.connection()->close();
  });
  if (all_closed()) stop_timer_.cancel();
  work_.reset();
}

bool PortState::all_closed() const {
  const std::shared_ptr<PortConnection>& dialled = dialler_.connection();
  return connections_.empty() && (!dialled || dialled->closed());
}

void PortState::apply(Settings settings) {
  settings_ = std::move(settings);
  for (const auto& [number, connection] : connections_) connection->access_changed();
  if (!stopping_) dialler_.use(settings_.coordinator);
}

void PortState::accept_unix(net::UnixSocket socket) {
  const auto who = net::peer_credentials(socket.native_handle());
  if (!who) {
    complain(Complaint::refused, who.error().message);
    return;
  }
  add(fmt::format("uid {}", who->uid),
      {.uid = who->uid, .gids = who->gids, .certificate = {}, .from = "unix"},
      net::make_plain_channel(net::StreamSocket(std::move(socket))));
}

void PortState::accept_tcp(net::Socket socket) {
  std::error_code error;
  const net::Endpoint from = net::unmapped(socket.remote_endpoint(error));
  if (error) return;
  net::keep_alive(socket.native_handle());
  const std::string address = from.address().to_string();
  add(address, {.uid = std::nullopt, .gids = {}, .certificate = {}, .from = address},
      net::accept_tls(std::move(socket), settings_.tls));
}

void PortState::add(std::string peer_name, Identity identity,
                    std::unique_ptr<net::Channel> channel) {
  if (!make_room(peer_name, is_any_user(identity, settings_.access))) {
    ++counters_.refused;
    complain(Complaint::refused, fmt::format("{} has a connection too many: refused", peer_name));
    Envelope refusal;
    *refusal.mutable_error() =
        make_error(Error::UNAVAILABLE, "", "too many connections to this control port");
    refusal.set_answer(true);
    std::string frame;
    if (append_frame(refusal, kMostAnswer, frame)) {
      (void)channel->write_now(std::as_bytes(std::span(frame)));
    }
    channel->close();
    return;
  }
  ++counters_.accepted;
  ++peer(peer_name).connections;
  const std::uint64_t number = ++last_connection_;
  auto connection = std::make_shared<PortConnection>(*this, number, std::move(peer_name),
                                                     std::move(identity), std::move(channel));
  connections_.emplace(number, connection);
  asio::co_spawn(context_, PortConnection::serve(connection),
                 [this, number](const std::exception_ptr& problem) {
                   if (!problem) return;
                   // An exception of a library, such as for want of memory, costs this connection
                   // only.
                   const auto place = connections_.find(number);
                   if (place != connections_.end()) place->second->close();
                   remove(number);
                   spdlog::error("a connection of the control port was lost to an exception");
                 });
}

PortState::Peer& PortState::peer(const std::string& name) {
  const auto [place, fresh] = peers_.try_emplace(name);
  if (fresh) {
    place->second.tokens = limits_.requests_of_others_at_once;
    place->second.filled_at = now();
  }
  return place->second;
}

bool PortState::make_room(const std::string& peer_name, bool is_any_user) {
  if (stopping_) return false;
  const auto is_of_peer = [&](const PortConnection& each) { return each.peer() == peer_name; };
  const auto is_of_any_user = [](const PortConnection& each) { return each.is_any_user(); };
  const bool full = peer(peer_name).connections >= limits_.connections_of_a_peer;
  if (full && !evict_silent(is_of_peer)) return false;
  if (is_any_user) {
    const auto others = std::ranges::count_if(
        connections_, [](const auto& each) { return each.second->is_any_user(); });
    const bool others_full = std::cmp_greater_equal(others, limits_.connections_of_others);
    if (others_full && !evict_silent(is_of_any_user)) return false;
  }
  if (connections_.size() < limits_.connections) return true;
  return evict_silent([](const PortConnection&) { return true; });
}

// Closes the oldest connection that has not said Hello and `may_go`.
bool PortState::evict_silent(const std::function<bool(const PortConnection&)>& may_go) {
  const auto oldest = std::ranges::find_if(connections_, [&](const auto& each) {
    return !each.second->greeted() && may_go(*each.second);
  });
  if (oldest == connections_.end()) return false;
  ++counters_.evicted;
  oldest->second->close();
  remove(oldest->first);
  return true;
}

void PortState::remove(std::uint64_t number) {
  const auto place = connections_.find(number);
  if (place == connections_.end()) return;
  --peer(place->second->peer()).connections;
  connections_.erase(place);
  if ((stopping_ || has_left_) && all_closed()) stop_timer_.cancel();
}

void PortState::ask(const PortConnection& connection, std::uint64_t ticket, Envelope request,
                    const Caller& caller) {
  if (has_left_) {
    Envelope refusal;
    *refusal.mutable_error() = taken_over();
    mailbox_->post(
        {.connection = connection.number(), .ticket = ticket, .answer = std::move(refusal)});
    return;
  }
  const bool audited = is_audited(request);
  std::string counted;
  // The bound of requests in flight is enough for a connection that may change everything.
  if (connection.rights() != Rights::change) {
    Peer& who = peer(connection.peer());
    if (who.unanswered >= limits_.unanswered_of_a_reader) {
      ++counters_.too_many;
      Envelope refusal;
      *refusal.mutable_error() = make_error(
          Error::UNAVAILABLE, "",
          fmt::format("{} requests of {} are not answered yet", who.unanswered, caller.name));
      mailbox_->post(
          {.connection = connection.number(), .ticket = ticket, .answer = std::move(refusal)});
      return;
    }
    ++who.unanswered;
    counted = connection.peer();
  }
  auto deliver = [mailbox = mailbox_, audit = audit_, connection = connection.number(), ticket,
                  caller, audited, counted, is_site = request.has_site(),
                  command = audited ? command_text(request) : ""](Envelope answer) {
    // A coordinator tells its site again and again.
    const bool changed_nothing = is_site && answer.has_ack() && answer.ack().text().empty();
    if (audited && !changed_nothing) audit->record(caller, command, result_text(answer), false);
    mailbox->post(
        {.connection = connection, .ticket = ticket, .answer = std::move(answer), .peer = counted});
  };
  owner_.ask(std::move(request), caller, Answer(std::move(deliver)));
}

std::shared_ptr<PortConnection> PortState::connection(std::uint64_t number) const {
  const std::shared_ptr<PortConnection>& dialled = dialler_.connection();
  if (dialled && dialled->number() == number) return dialled;
  const auto place = connections_.find(number);
  return place == connections_.end() ? nullptr : place->second;
}

void PortState::deliver() {
  for (Mailbox::Letter& letter : mailbox_->take()) {
    if (!letter.peer.empty()) --peer(letter.peer).unanswered;
    const std::shared_ptr<PortConnection> connection = this->connection(letter.connection);
    if (connection == nullptr) {
      ++counters_.dropped_answers;
      continue;
    }
    connection->answered(letter.ticket, std::move(letter.answer));
  }
}

bool PortState::admits_another(const std::string& peer_name, TimePoint now) {
  Peer& who = peer(peer_name);
  const double seconds = std::chrono::duration<double>(now - who.filled_at).count();
  who.filled_at = now;
  who.tokens = std::min<double>(limits_.requests_of_others_at_once,
                                who.tokens + seconds * limits_.requests_of_others_each_second);
  if (who.tokens < 1) return false;
  who.tokens -= 1;
  return true;
}

void PortState::record(const Envelope& request, const Caller& caller, std::string_view result,
                       bool refused) {
  audit_->record(caller, command_text(request), result, refused);
}

bool PortState::count_answers(std::size_t before, std::size_t after) {
  unread_answers_ = unread_answers_ - before + after;
  return unread_answers_ <= limits_.answers_of_all;
}

net::Task<std::optional<std::string>> PortState::name_of(std::uint32_t uid) {
  const auto known = users_.find(uid);
  if (known != users_.end() && now() - known->second.found_at < kNamesKept) {
    co_return known->second.name;
  }
  if (uid == 0) co_return "root";  // whatever becomes of the name service
  if (!look_up(uid)) co_return std::nullopt;
  const Waiter waiter = std::make_shared<asio::steady_timer>(context_, kNamePatience);
  lookups_[uid].push_back(waiter);
  std::error_code ignored;
  co_await waiter->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  const auto found = users_.find(uid);
  co_return found == users_.end() ? std::nullopt : found->second.name;
}

// Begins to look the name up, unless that is under way. False: too many are.
bool PortState::look_up(std::uint32_t uid) {
  if (lookups_.contains(uid)) return true;
  if (lookups_.size() >= kMostLookups) return false;
  Result<std::thread> thread = net::start_thread([uid, names = names_] {
    std::optional<std::string> name = user_name(uid);
    const std::lock_guard lock(names->mutex);
    if (names->port == nullptr) return;
    asio::post(names->port->context_,
               [names, uid, name = std::move(name)] { names->port->name_found(uid, name); });
  });
  if (!thread) return false;
  thread->detach();
  lookups_.try_emplace(uid);
  return true;
}

void PortState::name_found(std::uint32_t uid, std::optional<std::string> name) {
  if (users_.size() >= kMostNames) users_.clear();
  users_.insert_or_assign(uid, UserName{std::move(name), now()});
  const auto waiters = lookups_.extract(uid);
  for (const Waiter& each : waiters.mapped()) each->cancel();
}

void PortState::complain(Complaint kind, const std::string& text) {
  Complaints& all = complaints_[static_cast<std::size_t>(kind)];
  if (all.logged_at && now() - *all.logged_at < kBetweenComplaints) {
    ++all.unlogged;
    return;
  }
  const std::uint64_t more = std::exchange(all.unlogged, 0);
  all.logged_at = now();
  if (more == 0) {
    spdlog::warn("control port: {}", text);
  } else {
    spdlog::warn("control port: {} ({} more such cases before)", text, more);
  }
}

void PortState::sweep() {
  const TimePoint now = clock_.now();
  const auto connections = connections_;
  for (const auto& [number, connection] : connections) connection->check(now);
  dialler_.check(now);
  std::erase_if(peers_, [&](const auto& each) {
    return each.second.connections == 0 && each.second.unanswered == 0 &&
           now - each.second.filled_at > kNamesKept;
  });
  const Duration period = std::min<Duration>({1s, limits_.hello / 4, limits_.stall / 4,
                                              limits_.idle / 4, limits_.coordinator_silence / 4});
  sweep_timer_.expires_after(period);
  sweep_timer_.async_wait([this](std::error_code stopped) {
    if (!stopped && !stopping_) sweep();
  });
}

}  // namespace vpfs::control
