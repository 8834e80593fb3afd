#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "stage/history_reading.h"
#include "stage/virtual_pfs.h"

namespace vpfs::stage {

// A virtual PFS with the share and the rule that it had for some time.
struct HistoryName {
  VirtualPfsId id;
  std::shared_ptr<const VirtualPfsInfo> info;  // nothing: the number was never given
  std::shared_ptr<const std::string> rule;     // nothing: none was known
  std::string jobid;
  std::uint64_t since = 0;  // the second that it got its number in
  std::uint64_t used = 0;   // the last second that it was used in
};

// Gives numbers to what rows of a history are about. There is a fixed number of them: the one that
// was used the longest time ago is given again, and older rows with it have lost their name.
class HistoryNames {
 public:
  using Number = std::uint16_t;
  static constexpr std::size_t kMost = 3072;
  static constexpr Number kNone = 0xffff;
  // A number keeps its name for so many seconds after its last use: sums of a minute refer to it.
  static constexpr std::uint64_t kKept = 120;

  HistoryNames();

  // kNone: all numbers were used in the last kKept seconds. O(1) while the virtual PFS is as it was
  // some seconds before, else O(kMost).
  [[nodiscard]] Number number_of(const HistoryReading& reading, std::uint64_t second);
  // The same for a name of an earlier run, which belongs to no virtual PFS that there is.
  [[nodiscard]] std::optional<Number> add(HistoryName name, std::uint64_t second);
  // It is used in this second too. REQUIRES: find() knows it.
  void use(Number number, std::uint64_t second) { names_[number].used = second; }
  // nullptr: the number has no name, or has been given to another since that second.
  [[nodiscard]] const HistoryName* find(Number number, std::uint64_t second) const;

 private:
  // Numbers of one virtual PFS, the last one first. Several rules may send to it in turn.
  using Recent = std::array<Number, 4>;
  static constexpr Recent kNoneOf = {kNone, kNone, kNone, kNone};

  [[nodiscard]] std::optional<Number> oldest(std::uint64_t second) const;

  std::vector<HistoryName> names_;
  std::vector<Recent> last_;  // by AppId
};

}  // namespace vpfs::stage
