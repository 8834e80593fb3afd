#include "tools/selftest/held_rules.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tools/selftest/loads.h"

namespace vpfs::selftest {
namespace {

constexpr std::size_t kApplications = 2;

}  // namespace

HeldRules::~HeldRules() {
  (void)end();
}

std::string HeldRules::lifetime() const {
  using std::chrono::ceil;
  const auto length = ceil<std::chrono::seconds>(settings_.time) + std::chrono::minutes(2);
  return fmt::format("for={}s", length.count());
}

std::vector<std::string> HeldRules::words(const Phase& phase, std::size_t application,
                                          BytesPerSecond limit) const {
  const auto& weights = phase.weights;
  const bool takes_part = application < phase.applications();
  const unsigned weight = takes_part && !weights.empty() ? weights[application] : 1;
  std::uint64_t rate = 0;
  if (limit.count > 0 && application == 0) {
    rate = limit.count;
  } else if (settings_.share) {
    const unsigned all = std::accumulate(weights.begin(), weights.end(), 0U);
    // One that does nothing in this phase may have the least.
    const std::uint64_t share = settings_.share->count;
    rate = !takes_part ? kKiB : all == 0 ? share : share * weight / all;
  }
  // A share may give a tenth of a second at once.
  const std::uint64_t burst = std::max(phase.size.count, rate / 10);
  return {fmt::format("weight={}", weight),
          rate > 0 ? fmt::format("rate={}B/s", rate) : "rate=none",
          settings_.share ? fmt::format("burst={}B", burst) : "burst=none"};
}

Result<void> HeldRules::start(const LoadProcess& self) {
  const Phase nothing;
  for (std::size_t i = 0; i < kApplications; ++i) {
    const std::string job = job_of(i);
    const std::string_view key = settings_.is_beegfs() ? "dir" : "hint.jobid";
    std::vector<std::string> first = words(nothing, i, {});
    std::erase_if(first, [](const std::string& word) { return word.ends_with("=none"); });
    first.push_back(lifetime());
    VPFS_TRY(proxy_.start_rule(
        {.name = job, .condition = fmt::format("{}={{{} {}}}", key, job, to_value(self))}, first));
    in_force_.push_back(words(nothing, i, {}));
  }
  renewed_ = clock_.now();
  return {};
}

Result<void> HeldRules::set(const Phase& phase, BytesPerSecond limit) {
  const bool renew = clock_.now() - renewed_ > settings_.time / 2;
  for (std::size_t i = 0; i < in_force_.size(); ++i) {
    std::vector<std::string> wanted = words(phase, i, limit);
    if (wanted == in_force_[i] && !renew) continue;
    in_force_[i] = wanted;
    wanted.push_back(lifetime());
    VPFS_TRY(proxy_.change_rule(job_of(i), wanted));
  }
  if (renew) renewed_ = clock_.now();
  return {};
}

Result<void> HeldRules::end() {
  Result<void> all;
  while (!in_force_.empty()) {
    const Result<void> stopped = proxy_.stop_rule(job_of(in_force_.size() - 1));
    if (!stopped && all) all = stopped;
    in_force_.pop_back();
  }
  return all;
}

}  // namespace vpfs::selftest
