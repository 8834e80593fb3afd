#include "tools/recording/recording.h"

#include <chrono>
#include <utility>

#include "tools/recording/words.h"

namespace vpfs::recording {

bool is_sane(const stage::Recorded& request) {
  constexpr std::int64_t kMostNs = static_cast<std::int64_t>(kLongestUs) * 1000;
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
  return request.arrival_ns >= -kMostNs && request.arrival_ns <= kMostNs &&
         request.asked <= kMostBytes && request.moved <= kMostBytes;
}

void drop_overwritten(Recording& recording) {
  if (recording.overwritten == 0 || recording.requests.empty()) return;
  const TimePoint first = end(recording.requests.front());
  if (first > TimePoint()) keep_last(recording, recording.length - first.time_since_epoch());
}

void keep_last(Recording& recording, Duration part) {
  if (part >= recording.length) return;
  const Duration skipped = recording.length - part;
  std::erase_if(recording.requests,
                [skipped](const stage::Recorded& each) { return end(each) < TimePoint(skipped); });
  for (stage::Recorded& each : recording.requests) {
    each.arrival_ns -= std::chrono::nanoseconds(skipped).count();
  }
  recording.began += std::chrono::duration_cast<std::chrono::seconds>(skipped);
  recording.length = part;
}

std::string_view word_of(IoKind kind) {
  return kKinds[std::to_underlying(kind)];
}

std::string_view word_of(stage::RecordedReason reason) {
  return kReasons[std::to_underlying(reason)];
}

std::string_view word_of(stage::RecordedEnd end) {
  return kEnds[std::to_underlying(end)];
}

}  // namespace vpfs::recording
