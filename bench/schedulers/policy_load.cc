#include "bench/schedulers/policy_load.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "schedulers/policies/adaptbf.h"
#include "schedulers/policies/anticipation.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/registry.h"

namespace vpfs {
namespace {

// The rate of flow `flow` of `flows`, if weights divide `percent` of the server's throughput.
std::uint64_t rate_of(std::uint32_t flow, std::uint32_t flows, std::uint64_t percent) {
  std::uint64_t weights = 0;
  for (std::uint32_t cycle = 0; cycle < 100; ++cycle) {
    weights += std::uint64_t{weight_of(cycle)} * (flows / 100 + (cycle < flows % 100 ? 1 : 0));
  }
  return std::max<std::uint64_t>(kThroughput / weights * percent / 100 * weight_of(flow), 1);
}

Share weight_share(std::uint32_t flow, std::uint32_t /*flows*/) {
  return {.weight = weight_of(flow)};
}
Share nodes_share(std::uint32_t flow, std::uint32_t /*flows*/) {
  return {.own = {{"nodes", weight_of(flow)}}};
}
Share limited_share(std::uint32_t flow, std::uint32_t flows) {
  return {.rate = {rate_of(flow, flows, kRatesPercent)}, .burst = kBurst};
}
Share constrained_share(std::uint32_t flow, std::uint32_t flows) {
  Share share = limited_share(flow, flows);
  share.weight = weight_of(flow);
  share.min = {rate_of(flow, flows, kMinimumsPercent)};
  return share;
}
// The shortest latency is four times what the server needs for all bursts and its depth.
Share deadline_share(std::uint32_t flow, std::uint32_t flows) {
  const std::uint32_t promised = std::min(flows, kMostPromised);
  const std::uint64_t bursts = promised * kBurst.count + kDepth * (4 * kKiB + kMiB);
  const Duration least(static_cast<std::int64_t>(4 * bursts * 1'000'000'000 / kThroughput));
  Share share = {.latency = least * (4 + flow % 7) / 4};
  if (flow >= promised) return share;
  share.rate = {rate_of(flow, promised, kPromisedPercent)};
  share.burst = kBurst;
  return share;
}

constexpr std::array kVariants = {
    Variant{.name = "adaptbf", .policy = "adaptbf", .share = nodes_share},
    Variant{.name = "edf", .policy = "edf", .share = deadline_share},
    Variant{.name = "fifo", .policy = "fifo", .share = weight_share},
    Variant{.name = "sfq", .policy = "sfq", .share = weight_share},
    Variant{.name = "sfq+think", .policy = "sfq", .share = weight_share, .anticipates = true},
    Variant{.name = "sfq, 1", .policy = "sfq", .share = weight_share, .queued_per_flow = 1},
    Variant{.name = "sfq+think, 1",
            .policy = "sfq",
            .share = weight_share,
            .anticipates = true,
            .queued_per_flow = 1},
    Variant{.name = "sfq, away",
            .policy = "sfq",
            .share = weight_share,
            .queued_per_flow = 1,
            .thinks = true},
    Variant{.name = "sfq+think, away",
            .policy = "sfq",
            .share = weight_share,
            .anticipates = true,
            .queued_per_flow = 1,
            .thinks = true},
    Variant{.name = "sfq+limits", .policy = "sfq", .share = constrained_share},
    Variant{.name = "tbf", .policy = "tbf", .share = limited_share},
};

SchedulerSettings scheduler_settings(const Variant& variant) {
  SchedulerSettings settings = {
      .depth = {.requests = kDepth},
      .own = {EdfSettings{.capacity = kThroughput, .largest_request = 4 * kKiB + kMiB}}};
  settings.own.of<AdapTbfSettings>().capacity.configured =
      kThroughput * kAdapTbfCapacityPercent / 100;
  settings.own.of<AnticipationSettings>().on = variant.anticipates;
  return settings;
}

}  // namespace

std::uint32_t weight_of(std::uint32_t flow) {
  return 1 + flow % 100;
}
Cost random_cost(std::mt19937_64& random) {
  return 4 * kKiB + random() % kMiB;
}

std::span<const Variant> measured_variants() {
  return kVariants;
}

PolicyLoad::PolicyLoad(const Variant& variant, std::uint32_t flows)
    : scheduler_(make_scheduler(variant.policy, scheduler_settings(variant)).value()),
      requests_(flows * variant.queued_per_flow + (variant.queued_per_flow > 1 ? kDepth : 0) +
                (flows == 1 ? kDepth : 0)),
      thinking_(variant.thinks ? std::max(flows / 2, 1U) : 0) {
  std::mt19937_64 random(1);
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    const Result<void> set = scheduler_->set_share(AppId{flow}, variant.share(flow, flows), now_);
    VPFS_ASSERT(set.has_value());
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    requests_[i].app = AppId{static_cast<std::uint32_t>(i % flows)};
    requests_[i].cost = random_cost(random);
    requests_[i].size = {requests_[i].cost};
    enqueue(requests_[i]);
  }
  for (IoRequest*& request : outstanding_) request = next();
}

void PolicyLoad::one_request_of_a_thinker() {
  for (bool is_done = false; !is_done; ++turn_) {
    now_ += kStep;
    IoRequest*& oldest = outstanding_[turn_ % kDepth];
    IoRequest*& returns = thinking_[turn_ % thinking_.size()];
    if (oldest != nullptr) scheduler_->complete(*oldest, oldest->cost, now_);
    if (returns != nullptr) enqueue(*returns);
    is_done = oldest != nullptr;
    returns = std::exchange(oldest, nullptr);
    for (IoRequest*& free : outstanding_) {
      if (free == nullptr) free = scheduler_->next(now_).request;
    }
  }
}

}  // namespace vpfs
