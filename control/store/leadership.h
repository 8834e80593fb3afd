#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::control {

// Terms are not above it, so that others come after each.
inline constexpr std::uint64_t kLargestTerm = ~std::uint64_t{0} / 4;

// A coordinator's time in office, as those after it need to know.
struct Leadership {
  std::uint64_t term = 0;  // above all before it
  // The lease of its cycles: its caps may be in force for so long after its end.
  Duration lease = {};
  Duration transit = {};
  std::uint64_t incarnation = 0;  // of its process; 0: not known
  // Where its control port is, as vpfsctl takes addresses. Standbys watch the first one.
  std::vector<std::string> addresses;
  // Where the members of its site reach it; empty: it has none.
  std::vector<std::string> members;
  bool has_resigned = false;  // it has ended by itself, and sends nothing any more

  bool operator==(const Leadership&) const = default;
};

// One line of JSON.
[[nodiscard]] std::string to_record(const Leadership& leadership);
// The error says what is wrong with the text. Records of versions that had no standbys are read.
[[nodiscard]] Result<Leadership> parse_leadership(const std::string& record);

}  // namespace vpfs::control
