#include "stage/book/rule_book.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "stage/book/record.h"

namespace vpfs::stage {

void RuleBook::commit(const BookOperation& operation) {
  const std::optional<std::string> problem = change(state_, operation);
  VPFS_ASSERT(!problem);
}

std::optional<WallTime> RuleBook::next_deadline() const {
  std::optional<WallTime> next;
  const auto add = [&](const std::optional<WallTime>& until) {
    if (until && (!next || *until < *next)) next = until;
  };
  if (state_.pending) add(state_.pending->deadline);
  for (const auto& rule : administrators_of(state_).rules) add(rule->until);
  for (const auto& share : administrators_of(state_).shares) add(share->until);
  for (const auto& rule : state_.coordinators) add(rule->until);
  for (const auto& [id, job] : state_.jobs) {
    add(job.until);
    if (job.rule) add(job.rule->until);
  }
  for (const auto& [id, job] : state_.site_jobs) add(job.until);
  add(state_.bypass.until);
  return next;
}

std::optional<BookOperation> RuleBook::expire(WallTime now) const {
  const std::optional<WallTime> next = next_deadline();
  if (!next || *next > now) return std::nullopt;
  return BookOperation{.at = now, .who = "vpfs", .what = Expire{}};
}

std::expected<void, std::string> RuleBook::replay(std::string_view record) {
  std::expected<BookRecord, std::string> read = read_record(record);
  VPFS_TRY(read);
  if (BookState* const state = std::get_if<BookState>(&read->what)) {
    if (state_.number != 0) return std::unexpected("a snapshot may be only at the beginning");
    state_ = std::move(*state);
    return {};
  }
  const std::optional<std::uint64_t>& number = read->number;
  if (number && *number != state_.number + 1) {
    return std::unexpected(
        fmt::format("operation {} is missing: this is number {}", state_.number + 1, *number));
  }
  if (auto problem = change(state_, std::get<BookOperation>(read->what))) {
    return std::unexpected(std::move(*problem));
  }
  return {};
}

std::string RuleBook::snapshot() const {
  return to_record(state_);
}

std::span<const HistoryEntry> RuleBook::history() const {
  const std::span<const HistoryEntry> all = state_.history;
  // The changes of the first one are not known unless it was the very first.
  const bool all_known = all.empty() || all.front().version == 1;
  return all.last(std::min(all.size() - (all_known ? 0 : 1), kMostHistory));
}

std::vector<Difference> RuleBook::differences_of(std::uint64_t version) const {
  const LiveSet* const set = set_of(state_, version);
  VPFS_ASSERT(version > 0 && set != nullptr);
  const LiveSet* const before = set_of(state_, version - 1);
  VPFS_ASSERT(before != nullptr);
  return differences(*before, *set);
}

}  // namespace vpfs::stage
