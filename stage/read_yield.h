#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "base/wide.h"

namespace vpfs::stage {

// Estimates which part of the bytes that reads ask for exists, from recent reads.
class ReadYield {
 public:
  [[nodiscard]] Bytes expected(Bytes asked) const {
    return {static_cast<std::uint64_t>(Wide{asked.count} * part_ / kWhole)};
  }
  void learn(Bytes asked, Bytes given) {
    const auto now = static_cast<std::uint32_t>(Wide{std::min(given.count, asked.count)} * kWhole /
                                                std::max<std::uint64_t>(asked.count, 1));
    part_ =
        now > part_ ? part_ + (now - part_ + kSteps - 1) / kSteps : part_ - (part_ - now) / kSteps;
  }

  template <typename Archive>
  void archive(Archive& fields) {
    fields("part", part_);
    if constexpr (Archive::kReads) part_ = std::min(part_, kWhole);
  }

 private:
  static constexpr std::uint32_t kWhole = 1U << 16;
  static constexpr std::uint32_t kSteps = 8;
  std::uint32_t part_ = kWhole;
};

}  // namespace vpfs::stage
