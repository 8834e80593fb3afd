#include "stage/client_limits.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace vpfs::stage {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
// An application that has sent nothing for this long is gone.
constexpr Duration kGone = std::chrono::minutes(1);
// Clients give up a request after 600 s.
constexpr Duration kComesAgain = std::chrono::seconds(700);
constexpr std::size_t kMostRemembered = 4096;
// How often requests that never return are removed.
constexpr Duration kTidying = std::chrono::seconds(10);
constexpr std::size_t kFewApplications = 64;
constexpr std::size_t kMostVacant = 1024;

// Greater for the younger one.
std::pair<TimePoint, std::uint64_t> age_of(const Held& io) {
  return {io.first_seen, io.order};
}

}  // namespace

ClientId ClientLimits::join(const std::string& name) {
  const auto found = by_name_.find(name);
  const ClientId id = found != by_name_.end() ? found->second : make(name);
  Client& client = clients_[static_cast<std::size_t>(id)];
  client.most_connections = std::max(client.most_connections, ++client.connections);
  return id;
}

// Reuses the place of a client that left long ago, if there are many.
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
  // The open connections show how many the client may open; the count starts anew.
  if (--client.connections > 0) return;
  client.most_connections = 0;
  if (!std::exchange(client.vacant, true)) vacant_.push_back(id);
}

ClientLimits::Application& ClientLimits::application_of(Client& client, AppId app) {
  const auto found = client.applications.find(app);
  VPFS_ASSERT(found != client.applications.end());
  return found->second;
}

// Adds a new application. Applications that are gone are removed when there are many.
ClientLimits::Application& ClientLimits::present_application(Client& client, VirtualPfsId id,
                                                             TimePoint now) {
  const auto [found, is_new] = client.applications.try_emplace(id.app);
  if (found->second.generation != id.generation) {
    // A retired virtual PFS had the number; it has no requests here.
    VPFS_ASSERT(found->second.taken() == 0);
    found->second = {.generation = id.generation};
  }
  found->second.last_seen = now;
  if (!client.last || client.last->id != id) client.before = std::exchange(client.last, Seen{});
  client.last = Seen{.id = id, .last = now};
  if (is_new && client.applications.size() >= client.tidy_at) {
    looks_ += client.applications.size();
    std::erase_if(client.applications, [&](const auto& each) {
      return each.second.taken() == 0 && now - each.second.last_seen >= kGone;
    });
    client.tidy_at = std::max(kFewApplications, 2 * client.applications.size());
  }
  return found->second;
}

void ClientLimits::add_held(Client& client, Application& application, Held& io, TimePoint now) {
  if (application.taken() == 0) ++client.busy;
  if (application.held.empty()) {
    application.held_since = now;
    application.place = client.waiting.size();
    client.waiting.push_back(&application);
    client.taken += application.outstanding;
  }
  io.held_at = application.held.size();
  application.held.push_back(&io);
  ++client.taken;
  ++client.held;
  ++client.present;
}

// The caller decides whether the request is at the server from now on.
void ClientLimits::remove_held(Client& client, Held& io) {
  Application& application = application_of(client, io.app);
  VPFS_ASSERT(io.held_at < application.held.size() && application.held[io.held_at] == &io);
  application.held[io.held_at] = application.held.back();
  application.held[io.held_at]->held_at = io.held_at;
  application.held.pop_back();
  --client.taken;
  --client.held;
  --client.present;
  if (application.taken() == 0) --client.busy;
  if (!application.held.empty()) return;
  client.taken -= application.outstanding;
  client.waiting[application.place] = client.waiting.back();
  client.waiting[application.place]->place = application.place;
  client.waiting.pop_back();
}

void ClientLimits::queued(Held& io, TimePoint now) {
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
  add_held(client, present_application(client, io.virtual_pfs(), now), io, now);
  if (!std::exchange(client.touched, true)) touched_.push_back(io.client);
}

void ClientLimits::dispatched(Held& io, TimePoint now) {
  if (io.client == kNoClient) return;
  Client& client = client_of(io);
  remove_held(client, io);
  Application& application = application_of(client, io.app);
  if (application.taken() == 0) ++client.busy;
  if (!application.held.empty()) ++client.taken;
  ++application.outstanding;
  ++client.present;
  note_wait(client, application, io, now);
}

void ClientLimits::note_wait(Client& client, Application& application, const Held& io,
                             TimePoint now) {
  const Duration wait = now - io.first_seen;
  application.usual_wait =
      application.last_wait ? application.usual_wait + (wait - application.usual_wait) / 4 : wait;
  application.last_wait = wait;
  application.last_forwarded = now;
  std::optional<Quickest>& quickest = client.quickest;
  const bool is_it = quickest && quickest->id == io.virtual_pfs();
  if (is_backlogged(application, now)) {
    if (is_it) quickest.reset();
  } else if (!quickest || is_it || application.usual_wait <= quickest->wait ||
             now - quickest->last >= kGone) {
    quickest = {.id = io.virtual_pfs(), .wait = application.usual_wait, .last = now};
  }
}

bool ClientLimits::is_backlogged(const Application& application, TimePoint now) {
  return !application.held.empty() && now - application.held_since >= kPassing;
}

void ClientLimits::withdrawn(Held& io) {
  if (io.client != kNoClient) remove_held(client_of(io), io);
}

void ClientLimits::finished(const Held& io) {
  if (io.client == kNoClient) return;
  Client& client = client_of(io);
  Application& application = application_of(client, io.app);
  VPFS_ASSERT(application.outstanding > 0);
  --application.outstanding;
  --client.present;
  if (application.taken() == 0) --client.busy;
  if (!application.held.empty()) --client.taken;
}

// An application with requests here or at the server is present, however old they are.
bool ClientLimits::shows_several(const Client& client, TimePoint now) {
  std::size_t count = client.busy;
  for (const std::optional<Seen>& seen : {client.last, client.before}) {
    if (!seen || now - seen->last >= kGone) continue;
    const auto found = client.applications.find(seen->id.app);
    const bool is_busy = found != client.applications.end() &&
                         found->second.generation == seen->id.generation &&
                         found->second.taken() > 0;
    if (!is_busy) ++count;
  }
  return count > 1;
}

std::size_t ClientLimits::allowance_of(const Client& client, TimePoint now) const {
  if (!settings_.enabled) return kNoLimit;
  if (settings_.most) return *settings_.most;
  const std::size_t allowance = std::max(kLeast, client.most_connections * 2 / 3);
  if (client.taken <= allowance) return allowance;  // an unlimited allowance makes no difference
  return shows_several(client, now) ? allowance : kNoLimit;
}

void ClientLimits::remember(Client& client, const Held& io, TimePoint now) {
  if (io.fingerprint == 0) return;
  if (client.refused_requests.size() >= kMostRemembered && now - client.tidied >= kTidying) {
    client.tidied = now;
    std::erase_if(client.refused_requests,
                  [&](const auto& each) { return now - each.second.last >= kComesAgain; });
  }
  if (client.refused_requests.size() < kMostRemembered) {
    client.refused_requests.insert_or_assign(
        io.fingerprint,
        Refused{.first_seen = io.first_seen, .last = now, .times = io.times_refused + 1});
  }
}

bool ClientLimits::may_be_sent_back(const Held& io) {
  return io.kind == IoKind::read ? io.times_refused < kMostTimes : !io.came_again_at_once;
}

bool ClientLimits::lags(const Client& client, const Application& application, TimePoint now) {
  const std::optional<Quickest>& quickest = client.quickest;
  if (!quickest || now - quickest->last >= kGone) return false;
  const auto found = client.applications.find(quickest->id.app);
  if (found == client.applications.end()) return false;
  const Application& other = found->second;
  if (other.generation != quickest->id.generation || &other == &application) return false;
  if (is_backlogged(other, now)) return false;
  // Waiting requests count from when their application was served last.
  const auto waits = [&](const Application& each) {
    return each.held.empty() ? Duration::zero()
                             : now - std::max(each.held_since, each.last_forwarded);
  };
  const Duration usual =
      std::max(application.usual_wait, application.last_wait.value_or(Duration::zero()));
  const Duration least = client.held >= client.most_connections ? kLeastLag : kPassing;
  return std::max(usual, waits(application)) >=
         std::max(least, kLag * std::max(quickest->wait, waits(other)));
}

// If all requests of the client are held, none is forwarded at once, and no application may have
// more than the allowance.
bool ClientLimits::is_slow(const Client& client, const Application& application,
                           std::size_t allowance, TimePoint now) const {
  if (!settings_.most && !lags(client, application, now)) return false;
  if (client.held >= client.most_connections || application.taken() > allowance) return true;
  if (application.greedy && now - *application.greedy < kGreedy) return true;
  return !application.last_wait || *application.last_wait >= kPassing ||
         now - application.held_since >= kPassing;
}

ClientLimits::Slow ClientLimits::slow_ones(const Client& client, std::size_t allowance,
                                           TimePoint now) {
  Slow slow;
  for (const Application* each : client.waiting) {
    if (!is_slow(client, *each, allowance, now)) continue;
    ++slow.count;
    slow.taken += each->taken();
  }
  looks_ += client.waiting.size();
  return slow;
}

// Considers only requests that may be sent back.
Held* ClientLimits::youngest_of(const Application& application) {
  Held* youngest = nullptr;
  for (Held* io : application.held) {
    if (!may_be_sent_back(*io)) continue;
    if (youngest == nullptr || age_of(*io) > age_of(*youngest)) youngest = io;
  }
  looks_ += application.held.size();
  return youngest;
}

Held* ClientLimits::choose(Client& client, TimePoint now) {
  const std::size_t allowance = allowance_of(client, now);
  if (client.taken <= allowance) return nullptr;
  if (!settings_.most && client.present < client.most_connections) return nullptr;
  const Slow slow = slow_ones(client, allowance, now);
  if (slow.taken <= allowance) return nullptr;
  const std::size_t part = std::max<std::size_t>(1, allowance / slow.count);
  Held* chosen = nullptr;
  std::size_t most = 0;  // of an application with more than its part
  for (Application* each : client.waiting) {
    const std::size_t beyond = each->taken() > part ? each->taken() : 0;
    if (beyond < most || !is_slow(client, *each, allowance, now)) continue;
    Held* const youngest = youngest_of(*each);
    if (youngest == nullptr) continue;
    if (chosen != nullptr && beyond == most && age_of(*youngest) < age_of(*chosen)) continue;
    chosen = youngest;
    most = beyond;
  }
  if (chosen == nullptr) return nullptr;
  Application& application = application_of(client, chosen->app);
  if (application.held.size() > part) application.greedy = now;
  return chosen;
}

Held* ClientLimits::take_excess(TimePoint now) {
  while (!touched_.empty()) {
    Client& client = clients_[static_cast<std::size_t>(touched_.back())];
    if (Held* const chosen = choose(client, now)) {
      remove_held(client, *chosen);
      remember(client, *chosen, now);
      ++client.refused;
      return chosen;
    }
    client.touched = false;
    touched_.pop_back();
  }
  return nullptr;
}

void ClientLimits::save(SavedState& to) const {
  SavedState::Values all;
  for (const Client& client : clients_) {
    if (client.connections == 0 && client.refused_requests.empty()) continue;
    SavedState& one = all.emplace_back();
    one.set("name", client.name);
    one.set("most_connections", std::uint64_t{client.most_connections});
    one.set("refused", client.refused);
    SavedState::Numbers requests;
    for (const auto& [fingerprint, each] : client.refused_requests) {
      for (const std::uint64_t number :
           {fingerprint, saved_state::number_of(each.first_seen), saved_state::number_of(each.last),
            std::uint64_t{each.times}}) {
        requests.push_back(number);
      }
    }
    one.set("refused_requests", std::move(requests));
  }
  to.set("clients", std::move(all));
}

void ClientLimits::restore(const SavedState& from) {
  for (const SavedState& one : from.list("clients")) {
    const std::string name(one.text("name"));
    const auto found = by_name_.find(name);
    const ClientId id = found != by_name_.end() ? found->second : make(name);
    Client& client = clients_[static_cast<std::size_t>(id)];
    client.most_connections =
        std::max<std::size_t>(client.most_connections, one.number("most_connections"));
    client.refused += one.number("refused");
    if (client.connections == 0 && !std::exchange(client.vacant, true)) vacant_.push_back(id);
    const auto* const requests = one.find<SavedState::Numbers>("refused_requests");
    if (requests == nullptr) continue;
    for (std::size_t i = 0; i + 3 < requests->size(); i += 4) {
      Refused each;
      saved_state::assign(each.first_seen, (*requests)[i + 1]);
      saved_state::assign(each.last, (*requests)[i + 2]);
      each.times = static_cast<std::uint32_t>((*requests)[i + 3]);
      if (client.refused_requests.size() >= kMostRemembered) break;
      client.refused_requests.insert_or_assign((*requests)[i], each);
    }
  }
}

ClientLimits::Report ClientLimits::report(ClientId id, TimePoint now) const {
  const Client& client = clients_[static_cast<std::size_t>(id)];
  const bool is_limited = settings_.enabled && (settings_.most || shows_several(client, now));
  return {.name = client.name,
          .connections = client.connections,
          .allowance = is_limited ? std::optional(allowance_of(client, now)) : std::nullopt,
          .refused = client.refused};
}

}  // namespace vpfs::stage
