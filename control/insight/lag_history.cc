#include "control/insight/lag_history.h"

#include <algorithm>

namespace vpfs::insight {
namespace {

bool is_worse(const Lag& one, const Lag& other) {
  return one.lag * other.bound > other.lag * one.bound;
}

// Forgets the one that is the furthest from its bound, if `lag` is worse.
bool make_room(std::map<std::string, Lag, std::less<>>& worst, const Lag& lag) {
  const auto least = std::ranges::min_element(
      worst, [](const auto& one, const auto& other) { return is_worse(other.second, one.second); });
  if (!is_worse(lag, least->second)) return false;
  worst.erase(least);
  return true;
}

}  // namespace

void LagHistory::add(WallTime end, std::span<const NamedLag> lags) {
  // A span of a time that is still to come is of a clock that was ahead.
  std::erase_if(spans_, [end](const Span& span) {
    return span.end + kKept <= end || span.begin >= end + kKept;
  });
  if (lags.empty()) return;
  // The time of day may be set back.
  const bool is_in_last =
      !spans_.empty() && end >= spans_.back().begin && end < spans_.back().begin + kSpan;
  if (!is_in_last) {
    if (spans_.size() >= kMostSpans) spans_.pop_front();
    spans_.push_back({.begin = end, .end = end, .worst = {}});
  }
  Span& span = spans_.back();
  span.end = std::max(span.end, end);
  for (const NamedLag& each : lags) {
    const auto known = span.worst.find(each.name);
    if (known != span.worst.end()) {
      if (is_worse(each.lag, known->second)) known->second = each.lag;
    } else {
      if (span.worst.size() >= kMostNames && !make_room(span.worst, each.lag)) continue;
      span.worst.emplace(each.name, each.lag);
    }
  }
}

std::optional<Lag> LagHistory::worst(const std::string& name, WallTime from, WallTime to) const {
  std::optional<Lag> worst;
  for (const Span& span : spans_) {
    if (span.end < from || span.begin > to) continue;
    const auto found = span.worst.find(name);
    if (found != span.worst.end() && (!worst || is_worse(found->second, *worst))) {
      worst = found->second;
    }
  }
  return worst;
}

}  // namespace vpfs::insight
