#include "stage/book/live_rules.h"

#include <algorithm>

namespace vpfs::stage {
namespace {

// Whether two pointers, or rows of them, show equal values.
template <typename T>
bool same(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  return a == b || (a && b && *a == *b);
}

template <typename T>
bool same(const std::vector<std::shared_ptr<const T>>& a,
          const std::vector<std::shared_ptr<const T>>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return same(x, y); });
}

}  // namespace

bool operator==(const LiveSet& a, const LiveSet& b) {
  return same(a.rules, b.rules) && same(a.shares, b.shares);
}

bool operator==(const LiveJob& a, const LiveJob& b) {
  return a.job == b.job && a.origin == b.origin && a.by == b.by && a.since == b.since &&
         a.until == b.until && same(a.rule, b.rule);
}

bool operator==(const HistoryEntry& a, const HistoryEntry& b) {
  return a.version == b.version && a.at == b.at && a.who == b.who && a.command == b.command &&
         same(a.set, b.set);
}

bool operator==(const BookState& a, const BookState& b) {
  return a.number == b.number && a.version == b.version &&
         same(a.administrators, b.administrators) && a.history == b.history &&
         same(a.coordinators, b.coordinators) && a.jobs == b.jobs && a.site_jobs == b.site_jobs &&
         a.bypass == b.bypass && a.pending == b.pending;
}

}  // namespace vpfs::stage
