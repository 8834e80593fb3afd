#include "control/metrics/shown.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

namespace vpfs::control {
namespace {

// A virtual PFS without a request for this long is less active than any with one.
constexpr std::int64_t kActiveSeconds = 300;

void add(const Amount& from, Amount& to) {
  to.set_requests(to.requests() + from.requests());
  to.set_bytes(to.bytes() + from.bytes());
}

void add(const Statistic& from, Statistic& to) {
  to.set_samples(to.samples() + from.samples());
  to.set_sum(to.sum() + from.sum());
}

void add_counters(const VirtualPfs& from, VirtualPfs& to) {
  add(from.read(), *to.mutable_read());
  add(from.write(), *to.mutable_write());
  add(from.metadata(), *to.mutable_metadata());
  add(from.failed(), *to.mutable_failed());
  add(from.refused(), *to.mutable_refused());
  add(from.read_usecs(), *to.mutable_read_usecs());
  add(from.write_usecs(), *to.mutable_write_usecs());
  to.set_cost_done(to.cost_done() + from.cost_done());
  to.set_held_limit_us(to.held_limit_us() + from.held_limit_us());
  to.set_held_share_us(to.held_share_us() + from.held_share_us());
  to.set_held_kept_us(to.held_kept_us() + from.held_kept_us());
  to.set_held_depth_us(to.held_depth_us() + from.held_depth_us());
  to.set_held_class_us(to.held_class_us() + from.held_class_us());
  to.set_held_client_us(to.held_client_us() + from.held_client_us());
  to.set_passed_limit(to.passed_limit() + from.passed_limit());
}

void add_gauges(const VirtualPfs& from, VirtualPfs& to) {
  add(from.queued(), *to.mutable_queued());
  add(from.outstanding(), *to.mutable_outstanding());
}

bool is_default(const VirtualPfs& pfs) {
  return pfs.name() == "default";
}

// The larger, the more active. Within its class it hardly changes from one call to the next.
auto activity(const VirtualPfs& pfs, std::int64_t now) {
  const bool busy = pfs.queued().requests() > 0 || pfs.outstanding().requests() > 0;
  const bool active = busy || pfs.snapshot_at() + kActiveSeconds >= now;
  const auto last = active ? std::int64_t{0} : pfs.snapshot_at();
  return std::tuple(is_default(pfs), active, last, pfs.cost_done());
}

// The first come first of those that are equal.
void sort_down(std::vector<int>& order, const auto& rank_of) {
  std::ranges::sort(order, [&](int one, int other) {
    const auto rank = rank_of(one);
    const auto other_rank = rank_of(other);
    return rank != other_rank ? rank > other_rank : one < other;
  });
}

std::vector<int> numbers_to(int end) {
  std::vector<int> numbers(static_cast<std::size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

Shown choose_shown(const StatsReply& stats, std::size_t most) {
  Shown shown;
  add_counters(stats.retired(), shown.all);
  for (const VirtualPfs& each : stats.virtual_pfs()) add_counters(each, shown.all);
  std::vector<int> order = numbers_to(stats.virtual_pfs_size());
  sort_down(order, [&](int index) { return activity(stats.virtual_pfs(index), stats.at()); });
  // Two with one name would be two series with the same labels: the second joins the first.
  std::map<std::string_view, std::optional<std::size_t>> places;  // nothing: among the others
  for (const int index : order) {
    const VirtualPfs& each = stats.virtual_pfs(index);
    auto [place, fresh] = places.try_emplace(each.name());
    if (fresh && shown.each.size() < most && each.name() != kOthers) {
      place->second = shown.each.size();
      shown.each.push_back(each);
    } else if (place->second) {
      add_counters(each, shown.each[*place->second]);
      add_gauges(each, shown.each[*place->second]);
    } else {
      add_gauges(each, shown.others);
      ++shown.others_count;
    }
  }
  return shown;
}

std::vector<RuleState> choose_rules(const StatsReply& stats, std::size_t most) {
  std::vector<int> order = numbers_to(stats.rules_size());
  if (order.size() > most) {
    sort_down(order, [&](int index) { return stats.rules(index).hits(); });
    order.resize(most);
    std::ranges::sort(order);
  }
  std::vector<RuleState> rules;
  std::set<std::string_view> seen;
  for (const int index : order) {
    const RuleState& rule = stats.rules(index);
    if (seen.insert(rule.name()).second) rules.push_back(rule);
  }
  return rules;
}

}  // namespace vpfs::control
