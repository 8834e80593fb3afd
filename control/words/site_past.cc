#include "control/words/site_past.h"

#include <algorithm>
#include <array>
#include <utility>

namespace vpfs::words {
namespace {

// A proxy may name rules as it likes.
constexpr int kMostRules = 100;

double part(std::uint64_t of, double whole) {
  return whole > 0 ? static_cast<double>(of) / whole : 0;
}

constexpr std::array kParts = {
    &TimeParts::limit,         &TimeParts::share,       &TimeParts::kept_slot, &TimeParts::depth,
    &TimeParts::traffic_class, &TimeParts::slow_client, &TimeParts::server,    &TimeParts::rest};

// `to` is of so much time that it was active, `more` of so much more.
void add_parts(TimeParts& to, std::uint64_t time, const TimeParts& more, std::uint64_t more_time) {
  const double share = part(more_time, static_cast<double>(time) + static_cast<double>(more_time));
  for (const auto each : kParts) to.*each += share * (more.*each - to.*each);
}

}  // namespace

void add_use(control::PastOf& to, const control::PastOf& more) {
  if (to.name().empty()) {
    to.set_name(more.name());
    to.set_jobid(more.jobid());
    to.set_weight(more.weight());
    to.set_rate(more.rate());
    to.set_min(more.min());
    to.set_first_at(more.first_at());
  }
  if (to.jobid() != more.jobid()) to.clear_jobid();
  to.set_asked(to.asked() || more.asked());
  for (const std::string& rule : more.rules()) {
    if (to.rules_size() == kMostRules) break;
    if (std::ranges::find(to.rules(), rule) == to.rules().end()) to.add_rules(rule);
  }
  to.set_read_bytes(to.read_bytes() + more.read_bytes());
  to.set_written_bytes(to.written_bytes() + more.written_bytes());
  to.set_operations(to.operations() + more.operations());
  to.set_arrivals(to.arrivals() + more.arrivals());
  to.set_cost(to.cost() + more.cost());
  to.set_waited_us(to.waited_us() + more.waited_us());
  to.set_served_us(to.served_us() + more.served_us());
  to.set_held_limit_us(to.held_limit_us() + more.held_limit_us());
  to.set_held_share_us(to.held_share_us() + more.held_share_us());
  to.set_held_kept_us(to.held_kept_us() + more.held_kept_us());
  to.set_held_depth_us(to.held_depth_us() + more.held_depth_us());
  to.set_held_class_us(to.held_class_us() + more.held_class_us());
  to.set_held_client_us(to.held_client_us() + more.held_client_us());
  to.set_longest_wait_us(std::max(to.longest_wait_us(), more.longest_wait_us()));
  to.set_queued_bytes(to.queued_bytes() + more.queued_bytes());
  to.set_active_us(to.active_us() + more.active_us());
  to.set_wanted_cost(to.wanted_cost() + more.wanted_cost());
  to.set_entitled_cost(to.entitled_cost() + more.entitled_cost());
  to.set_wanted_all_us(to.wanted_all_us() + more.wanted_all_us());
  const bool is_further =
      more.has_lag_cost() && (!to.has_lag_cost() || more.lag_cost() * to.lag_bound_cost() >
                                                        to.lag_cost() * more.lag_bound_cost());
  if (is_further) {
    to.set_lag_cost(more.lag_cost());
    to.set_lag_bound_cost(more.lag_bound_cost());
  }
  to.set_first_at(std::min(to.first_at(), more.first_at()));
  to.set_last_at(std::max(to.last_at(), more.last_at()));
}

// Heads of several queues wait at once where there are several lanes. Then the parts are those of
// the time that they all waited.
TimeParts time_parts(const control::PastOf& who) {
  const std::uint64_t held = who.held_limit_us() + who.held_share_us() + who.held_kept_us() +
                             who.held_depth_us() + who.held_class_us() + who.held_client_us();
  const std::uint64_t active = std::max(who.active_us(), held);
  // Requests that are served at once count in served_us each.
  const std::uint64_t served = std::min(active - held, who.served_us());
  const auto whole = static_cast<double>(active);
  return {.limit = part(who.held_limit_us(), whole),
          .share = part(who.held_share_us(), whole),
          .kept_slot = part(who.held_kept_us(), whole),
          .depth = part(who.held_depth_us(), whole),
          .traffic_class = part(who.held_class_us(), whole),
          .slow_client = part(who.held_client_us(), whole),
          .server = part(served, whole),
          .rest = part(active - held - served, whole)};
}

SitePast add_up(std::vector<SitePast::Server> servers) {
  SitePast past;
  for (SitePast::Server& server : servers) {
    const control::PastReply& reply = server.reply;
    if (reply.known_from_at() != 0 &&
        (past.known_from_at == 0 || reply.known_from_at() < past.known_from_at)) {
      past.known_from_at = reply.known_from_at();
    }
    if (reply.length_us() == 0) continue;
    const bool is_first = past.servers.empty();
    past.from_at = is_first ? reply.from_at() : std::min(past.from_at, reply.from_at());
    past.to_at = std::max(past.to_at, reply.to_at());
    past.cost += reply.cost();
    past.is_partial = past.is_partial || reply.partial();
    for (const control::PastOf& each : reply.virtual_pfs()) {
      control::PastOf& sum = past.virtual_pfs[each.name()];
      add_parts(past.time_parts[each.name()], sum.active_us(), time_parts(each), each.active_us());
      add_use(sum, each);
    }
    add_use(past.others, reply.others());
    past.servers.push_back(std::move(server));
  }
  return past;
}

std::vector<std::string> asked_names(const SitePast& past) {
  std::vector<const control::PastOf*> found;
  for (const auto& [name, who] : past.virtual_pfs) {
    if (who.asked()) found.push_back(&who);
  }
  std::ranges::sort(found, std::greater(),
                    [](const control::PastOf* each) { return each->cost(); });
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const control::PastOf* each : found) names.push_back(each->name());
  return names;
}

std::uint64_t bytes_of(const control::PastOf& who) {
  return who.read_bytes() + who.written_bytes();
}

double held_for_others(const TimeParts& parts) {
  return parts.share + parts.kept_slot + parts.depth + parts.traffic_class;
}

TimeParts time_parts(const SitePast& past, const std::string& name) {
  const auto found = past.time_parts.find(name);
  return found == past.time_parts.end() ? TimeParts() : found->second;
}

}  // namespace vpfs::words
