// The part of ShadowLimits for a successor in another process.
#include <utility>

#include "stage/shadow_limits.h"

namespace vpfs::stage {

void ShadowLimits::save(TimePoint now, SavedState& to) {
  SavedState::Values all;
  for (auto& [name, rule] : rules_) {
    SavedState& of_rule = all.emplace_back();
    of_rule.set("rule", name);
    StateWriter{of_rule}("counts", rule.retired);
    const auto add = [&](std::uint32_t index) {
      Row& row = rows_[index];
      Report counts = counts_of(row, now);
      SavedState& one = all.emplace_back();
      one.set("rule", name);
      one.set("virtual_pfs", row.virtual_pfs == nullptr ? std::string() : *row.virtual_pfs);
      StateWriter out(one);
      out("counts", counts);
      if (row.bytes) out("bytes", row.bytes->tokens);
      if (row.operations) out("operations", row.operations->tokens);
    };
    for (const auto& [virtual_pfs, index] : rule.rows) add(index);
    if (rule.others) add(*rule.others);
  }
  to.set("shadows", std::move(all));
}

// Rows that the successor has no more count for their rule.
void ShadowLimits::restore(const SavedState& from, TimePoint now) {
  for (const SavedState& one : from.list("shadows")) {
    const auto rule = rules_.find(one.text("rule"));
    if (rule == rules_.end()) continue;
    StateReader in(one);
    Report counts;
    in("counts", counts);
    const std::string virtual_pfs(one.text("virtual_pfs"));
    if (virtual_pfs.empty()) {
      rule->second.retired += counts;
      continue;
    }
    const ShadowRef found = find(one.text("rule"), virtual_pfs, now);
    Row& row = rows_[found.row];
    counts.names = 0;  // the row has its own
    row.counts += counts;
    const auto take_on = [&](std::string_view name, std::optional<Bucket>& bucket) {
      if (!bucket || one.list(name).empty()) return;
      TokenBucket saved;
      in(name, saved);
      if (saved.rate() == bucket->tokens.rate() && saved.depth() == bucket->tokens.depth()) {
        bucket->tokens = saved;
      }
    };
    take_on("bytes", row.bytes);
    take_on("operations", row.operations);
  }
}

}  // namespace vpfs::stage
