#include "sim/proxies/whatif/entitlement.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/wide.h"
#include "schedulers/policies/edf.h"
#include "schedulers/policies/tbf.h"

namespace vpfs::sim {
namespace {

// One of those that share, in bytes of the time.
struct Claim {
  std::uint64_t weight = 1;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t has = 0;
  bool is_settled = false;
};

std::uint64_t in_time(BytesPerSecond rate, Duration time) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const Wide bytes = Wide{rate.count} * static_cast<std::uint64_t>(time.count()) / kSecond;
  return static_cast<std::uint64_t>(
      std::min<Wide>(bytes, std::numeric_limits<std::uint64_t>::max()));
}

std::uint64_t part_of(std::uint64_t whole, std::uint64_t part, Wide of) {
  return static_cast<std::uint64_t>(Wide{whole} * part / of);
}

// There is less than all least rates together, or just as much.
void divide_by_rank(std::span<const Promise> promises, std::uint64_t left,
                    std::vector<Claim>& claims) {
  std::map<std::uint64_t, Wide> wanted;
  for (std::size_t i = 0; i < claims.size(); ++i) wanted[promises[i].rank] += claims[i].least;
  for (const auto& [rank, sum] : wanted) {
    if (sum == 0) continue;
    const auto its = static_cast<std::uint64_t>(std::min<Wide>(sum, left));
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (promises[i].rank == rank) claims[i].has = part_of(its, claims[i].least, sum);
    }
    left -= its;
  }
}

// Settles claims at one of their bounds until all others are within theirs. In each round, only the
// side that is further off is certain.
void divide_by_weight(std::uint64_t left, std::vector<Claim>& claims) {
  for (;;) {
    Wide weights = 0;
    for (const Claim& each : claims) weights += each.is_settled ? 0 : each.weight;
    if (weights == 0) return;
    Wide missing = 0;
    Wide excess = 0;
    for (Claim& each : claims) {
      if (each.is_settled) continue;
      each.has = part_of(left, each.weight, weights);
      if (each.has < each.least) missing += each.least - each.has;
      if (each.has > each.most) excess += each.has - each.most;
    }
    if (missing == 0 && excess == 0) return;
    for (Claim& each : claims) {
      const bool is_certain = missing >= excess ? each.has < each.least : each.has > each.most;
      if (each.is_settled || !is_certain) continue;
      each.has = missing >= excess ? each.least : each.most;
      each.is_settled = true;
      left -= std::min(left, each.has);
    }
  }
}

}  // namespace

Promise promise_of(const PolicyKind& policy, const Share& share, std::uint64_t servers) {
  const auto on_all = [servers](BytesPerSecond rate) {
    return BytesPerSecond{rate.count > std::numeric_limits<std::uint64_t>::max() / servers
                              ? std::numeric_limits<std::uint64_t>::max()
                              : rate.count * servers};
  };
  Promise promise{.weight = share.weight};
  for (const ShareWord& word : policy.share_words) {
    if (word.replaces_weight) promise.weight = share.own_value(word.name).value_or(share.weight);
  }
  if (policy.knows(ShareField::min)) promise.least = on_all(share.min);
  const bool has_rate = policy.knows(ShareField::rate) && share.rate.count > 0;
  if (&policy == &Tbf::kKind) {
    // A claim with a rate gets just that. Others get what is left, first come first served.
    promise.weight = 1;
    promise.rank = share.rank.value_or(0);
    if (has_rate) promise.least = on_all(share.rate);
  }
  if (&policy == &Edf::kKind) {
    // Promised with a target only. Beyond it a flow has what is left.
    if (has_rate && share.latency > Duration::zero()) promise.least = on_all(share.rate);
  } else if (has_rate) {
    promise.most = on_all(share.rate);
    promise.least = std::min(promise.least, *promise.most);
  }
  return promise;
}

std::vector<Bytes> entitled(std::span<const Promise> promises, Bytes moved, Duration time) {
  std::vector<Claim> claims;
  Wide least = 0;
  for (const Promise& each : promises) {
    const std::uint64_t most =
        each.most ? in_time(*each.most, time) : std::numeric_limits<std::uint64_t>::max();
    claims.push_back(
        {.weight = each.weight, .least = std::min(in_time(each.least, time), most), .most = most});
    least += claims.back().least;
  }
  if (least >= moved.count) {
    divide_by_rank(promises, moved.count, claims);
  } else {
    divide_by_weight(moved.count, claims);
  }
  std::vector<Bytes> result;
  for (const Claim& each : claims) result.push_back({each.has});
  return result;
}

}  // namespace vpfs::sim
