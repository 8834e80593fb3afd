#include "stage/history/names.h"

#include <algorithm>
#include <utility>

namespace vpfs::stage {
namespace {

bool is_about(const HistoryName& name, const HistoryReading& reading) {
  return name.id == reading.id && name.info == reading.info && name.rule == reading.rule &&
         name.jobid == reading.jobid;
}

}  // namespace

HistoryNames::HistoryNames() : names_(kMost) {}

HistoryNames::Number HistoryNames::number_of(const HistoryReading& reading, std::uint64_t second) {
  const std::size_t app = std::to_underlying(reading.id.app);
  if (app >= last_.size()) last_.resize(app + 1, kNoneOf);
  Recent& recent = last_[app];
  for (std::size_t i = 0; i < recent.size(); ++i) {
    const Number number = recent[i];
    if (number == kNone || !is_about(names_[number], reading)) continue;
    std::rotate(recent.begin(), recent.begin() + static_cast<std::ptrdiff_t>(i),
                recent.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    names_[number].used = second;
    return number;
  }
  const std::optional<Number> free = oldest(second);
  if (!free) return kNone;
  names_[*free] = {.id = reading.id,
                   .info = reading.info,
                   .rule = reading.rule,
                   .jobid = reading.jobid,
                   .since = second,
                   .used = second};
  std::shift_right(recent.begin(), recent.end(), 1);
  return recent.front() = *free;
}

std::optional<HistoryNames::Number> HistoryNames::add(HistoryName name, std::uint64_t second) {
  const std::optional<Number> free = oldest(second);
  if (!free) return std::nullopt;
  name.since = name.used = second;
  names_[*free] = std::move(name);
  return free;
}

std::optional<HistoryNames::Number> HistoryNames::oldest(std::uint64_t second) const {
  const auto found = std::ranges::min_element(names_, [](const auto& one, const auto& other) {
    if ((one.info == nullptr) != (other.info == nullptr)) return one.info == nullptr;
    return one.used < other.used;
  });
  if (found->info != nullptr && second - found->used < kKept) return std::nullopt;
  return static_cast<Number>(found - names_.begin());
}

const HistoryName* HistoryNames::find(Number number, std::uint64_t second) const {
  if (number >= names_.size()) return nullptr;
  const HistoryName& name = names_[number];
  return name.info != nullptr && name.since <= second ? &name : nullptr;
}

}  // namespace vpfs::stage
