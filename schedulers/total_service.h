#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "schedulers/start_tag.h"

namespace vpfs {

// What flows were served by all schedulers of one data server, in start tags: cost / weight. Each
// scheduler writes what it sends, and reads what the others sent when it looks at a flow. So they
// tell each other at once, and for a cost that does not grow with their number.
//
// It also knows which flows the server has requests of. A flow that has none anywhere for more than
// kKeepsClaim comes back without claims. What is read here is only compared with what was read
// before, modulo 2^64.
//
// Every call is O(1). Allocates in grow() only.
class TotalService {
 public:
  using Tag = StartTag::Tag;
  static constexpr Duration kKeepsClaim = std::chrono::milliseconds(100);

  struct Row {
    Tag served = 0;
    TimePoint left = {};        // when the last of its requests did
    std::uint32_t present = 0;  // requests, queued and outstanding
    std::uint32_t returns = 0;  // after more than kKeepsClaim without a request
  };

  // For how long a head may be held for what its flow got from the others.
  void set_longest_delay(Duration delay) { longest_delay_ = delay; }
  [[nodiscard]] Duration longest_delay() const { return longest_delay_; }

  void grow(std::size_t flows) {
    if (flows > rows_.size()) rows_.resize(flows);
  }
  // REQUIRES (all): grow() was called for the flow.
  [[nodiscard]] const Row& operator[](std::uint32_t flow) const { return rows_[flow]; }
  void arrived(std::uint32_t flow, TimePoint now) {
    Row& row = rows_[flow];
    if (row.present++ == 0 && now - row.left > kKeepsClaim) ++row.returns;
    ++present_;
  }
  // So many requests ended or were withdrawn.
  void left(std::uint32_t flow, std::uint32_t requests, TimePoint now) {
    Row& row = rows_[flow];
    row.present -= requests;
    row.left = std::max(row.left, now);
    present_ -= requests;
    if (present_ == 0 && requests > 0) ++idle_moments_;
  }
  void served(std::uint32_t flow, Tag amount) { rows_[flow].served += amount; }
  void gave_back(std::uint32_t flow, Tag amount) { rows_[flow].served -= amount; }

  // How often the last request of all left.
  [[nodiscard]] std::uint64_t idle_moments() const { return idle_moments_; }
  void prefetch(std::uint32_t flow) const { __builtin_prefetch(&rows_[flow]); }

 private:
  std::vector<Row> rows_;
  std::uint64_t present_ = 0;  // of all flows
  std::uint64_t idle_moments_ = 0;
  Duration longest_delay_ = std::chrono::milliseconds(500);
};

}  // namespace vpfs
