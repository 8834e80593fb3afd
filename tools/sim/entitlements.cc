#include "tools/sim/entitlements.h"

#include <map>
#include <string_view>
#include <utility>

#include "sim/proxies/whatif/entitlement.h"

namespace vpfs::sim_tool {
namespace {

using sim::ApplicationResult;

// The virtual PFSes of applications as numbers from 0.
std::vector<std::size_t> groups_of(const FinishedRun& run) {
  std::map<std::string_view, std::size_t> numbers;
  std::vector<std::size_t> groups;
  groups.reserve(run.result.applications.size());
  for (const ApplicationResult& each : run.result.applications) {
    groups.push_back(numbers.try_emplace(each.virtual_pfs, numbers.size()).first->second);
  }
  return groups;
}

// What one virtual PFS is entitled to. Applications that use other servers have another promise of
// the same one, and then that counts for them.
class IntervalShares {
 public:
  IntervalShares(Bytes moved, Duration time) : moved_(moved), time_(time) {}

  void add(std::size_t group, const sim::Promise& promise) {
    if (places_.try_emplace(group, promises_.size()).second) promises_.push_back(promise);
  }
  [[nodiscard]] Bytes of(std::size_t group, const sim::Promise& promise) {
    const std::size_t place = places_.at(group);
    std::vector<std::pair<sim::Promise, Bytes>>& known = known_[place];
    for (const auto& [other, bytes] : known) {
      if (other == promise) return bytes;
    }
    const sim::Promise first = std::exchange(promises_[place], promise);
    const std::vector<Bytes> all = sim::entitled(promises_, moved_, time_);
    promises_[place] = first;
    if (first == promise) {
      for (std::size_t i = 0; i < all.size(); ++i) known_[i].emplace_back(promises_[i], all[i]);
    } else {
      known.emplace_back(promise, all[place]);
    }
    return all[place];
  }

 private:
  Bytes moved_;
  Duration time_;
  std::map<std::size_t, std::size_t> places_;  // by group
  std::vector<sim::Promise> promises_;
  std::map<std::size_t, std::vector<std::pair<sim::Promise, Bytes>>> known_;  // by place
};

}  // namespace

Entitlements::Entitlements(const FinishedRun& run) : run_(run) {
  const std::vector<std::size_t> groups = groups_of(run);
  std::size_t intervals = 0;
  for (const ApplicationResult& each : run.result.applications) {
    intervals = each.course.size();
    entitled_.emplace_back(intervals);
  }
  for (std::size_t i = 0; i < intervals; ++i) fill_in(groups, i);
}

void Entitlements::fill_in(const std::vector<std::size_t>& groups, std::size_t interval) {
  const std::vector<ApplicationResult>& all = run_.result.applications;
  Bytes moved;
  for (const ApplicationResult& each : all) moved += each.course[interval];
  IntervalShares shares(moved, interval_length(run_, interval));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].course[interval] != Bytes{}) shares.add(groups[i], all[i].promise);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].course[interval] == Bytes{}) continue;
    entitled_[i][interval] = shares.of(groups[i], all[i].promise);
  }
}

std::optional<Bytes> Entitlements::in(std::size_t application, std::size_t interval) const {
  if (run_.result.applications[application].course[interval] == Bytes{}) return std::nullopt;
  return entitled_[application][interval];
}

Bytes Entitlements::in_all(std::size_t application) const {
  Bytes sum;
  for (const Bytes each : entitled_[application]) sum += each;
  return sum;
}

}  // namespace vpfs::sim_tool
