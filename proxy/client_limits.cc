#include "proxy/client_limits.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace vpfs::proxy {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
// An application that has sent nothing for so long is not there any more.
constexpr Duration kQuiet = std::chrono::minutes(1);
// Clients give up a request after 600 s.
constexpr Duration kComesAgain = std::chrono::seconds(700);
constexpr std::size_t kMostRemembered = 4096;
constexpr std::size_t kMostVacant = 1024;

}  // namespace

ClientId ClientLimits::join(const std::string& name) {
  const auto found = by_name_.find(name);
  const ClientId id = found != by_name_.end() ? found->second : make(name);
  Client& client = clients_[static_cast<std::size_t>(id)];
  client.most_connections = std::max(client.most_connections, ++client.connections);
  return id;
}

// Takes the place of one that has gone long ago, if there are many.
ClientId ClientLimits::make(const std::string& name) {
  ClientId id{static_cast<std::uint32_t>(clients_.size())};
  while (vacant_.size() > kMostVacant) {
    const ClientId gone = vacant_.front();
    vacant_.pop_front();
    Client& client = clients_[static_cast<std::size_t>(gone)];
    client.vacant = false;
    if (client.connections > 0 || client.touched) continue;
    by_name_.erase(client.name);
    client = {.name = name};
    id = gone;
    break;
  }
  if (static_cast<std::size_t>(id) == clients_.size()) clients_.push_back({.name = name});
  by_name_.emplace(name, id);
  return id;
}

void ClientLimits::leave(ClientId id) {
  Client& client = clients_[static_cast<std::size_t>(id)];
  VPFS_ASSERT(client.connections > 0);
  // What the client has open says what it may open: from here on it is counted anew.
  if (--client.connections > 0) return;
  client.most_connections = 0;
  if (!std::exchange(client.vacant, true)) vacant_.push_back(id);
}

ClientLimits::Application& ClientLimits::application_of(Client& client, AppId app) {
  const auto found = std::ranges::find(client.applications, app, &Application::app);
  VPFS_ASSERT(found != client.applications.end());
  return *found;
}

// Makes it if it is new, in the place of those that are not there any more.
ClientLimits::Application& ClientLimits::present_application(Client& client, AppId app,
                                                             TimePoint now) {
  const auto found = std::ranges::find(client.applications, app, &Application::app);
  if (found != client.applications.end()) return *found;
  std::erase_if(client.applications,
                [&](const Application& each) { return !is_present(each, now); });
  return client.applications.emplace_back(Application{.app = app});
}

bool ClientLimits::is_present(const Application& application, TimePoint now) {
  return now - application.last_seen < kQuiet || !application.held.empty() ||
         application.outstanding > 0;
}

void ClientLimits::queued(PendingIo& io, TimePoint now) {
  if (io.client == kNoClient) return;
  Client& client = client_of(io);
  io.first_seen = io.arrival;
  io.times_refused = 0;
  io.came_again_at_once = false;
  if (const auto found = client.refused_requests.find(io.fingerprint);
      found != client.refused_requests.end()) {
    io.first_seen = found->second.first_seen;
    io.times_refused = found->second.times;
    io.came_again_at_once = io.arrival - found->second.last < kAtOnce;
    client.refused_requests.erase(found);
  }
  Application& application = present_application(client, io.app, now);
  application.last_seen = now;
  application.held.push_back(&io);
  if (!std::exchange(client.touched, true)) touched_.push_back(io.client);
}

void ClientLimits::remove_held(PendingIo& io) {
  std::vector<PendingIo*>& held = application_of(client_of(io), io.app).held;
  const auto found = std::ranges::find(held, &io);
  VPFS_ASSERT(found != held.end());
  *found = held.back();
  held.pop_back();
}

void ClientLimits::dispatched(PendingIo& io) {
  if (io.client == kNoClient) return;
  remove_held(io);
  ++application_of(client_of(io), io.app).outstanding;
}

void ClientLimits::withdrawn(PendingIo& io) {
  if (io.client != kNoClient) remove_held(io);
}

void ClientLimits::finished(const PendingIo& io) {
  if (io.client == kNoClient) return;
  Application& application = application_of(client_of(io), io.app);
  VPFS_ASSERT(application.outstanding > 0);
  --application.outstanding;
}

std::size_t ClientLimits::limit_of(const Client& client, TimePoint now) const {
  if (!settings_.enabled) return kNoLimit;
  if (settings_.most) return *settings_.most;
  const auto present = std::ranges::count_if(
      client.applications, [&](const Application& each) { return is_present(each, now); });
  if (present < 2) return kNoLimit;
  return std::max(kLeast, client.most_connections * 2 / 3);
}

void ClientLimits::remember(Client& client, const PendingIo& io, TimePoint now) {
  if (io.fingerprint == 0) return;
  if (client.refused_requests.size() >= kMostRemembered) {
    std::erase_if(client.refused_requests,
                  [&](const auto& each) { return now - each.second.last >= kComesAgain; });
  }
  if (client.refused_requests.size() < kMostRemembered) {
    client.refused_requests.insert_or_assign(
        io.fingerprint,
        Refused{.first_seen = io.first_seen, .last = now, .times = io.times_refused + 1});
  }
}

bool ClientLimits::may_be_sent_back(const PendingIo& io) {
  return io.kind == IoKind::read ? io.times_refused < kMostTimes : !io.came_again_at_once;
}

PendingIo* ClientLimits::take_excess(TimePoint now) {
  while (!touched_.empty()) {
    Client& client = clients_[static_cast<std::size_t>(touched_.back())];
    const std::size_t limit = limit_of(client, now);
    for (Application& application : client.applications) {
      if (application.held.empty()) continue;
      if (application.held.size() + application.outstanding <= limit) continue;
      const auto youngest = std::ranges::max_element(application.held, {}, [](const PendingIo* io) {
        return std::tuple(may_be_sent_back(*io), io->first_seen, io->order);
      });
      PendingIo& chosen = **youngest;
      if (!may_be_sent_back(chosen)) continue;
      remove_held(chosen);
      remember(client, chosen, now);
      ++client.refused;
      return &chosen;
    }
    client.touched = false;
    touched_.pop_back();
  }
  return nullptr;
}

ClientLimits::Report ClientLimits::report(ClientId id, TimePoint now) const {
  const Client& client = clients_[static_cast<std::size_t>(id)];
  const std::size_t limit = limit_of(client, now);
  return {.name = client.name,
          .connections = client.connections,
          .limit = limit == kNoLimit ? std::nullopt : std::optional(limit),
          .refused = client.refused};
}

}  // namespace vpfs::proxy
