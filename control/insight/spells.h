#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "stage/history/history.h"

namespace vpfs::insight {

// A time in which a limit held requests of a virtual PFS, or requests of other traffic classes went
// before them; or one in which it lent to others or borrowed from them.
struct Spell {
  enum class Cause : std::uint8_t { limit, traffic_class, loans };

  Cause cause = Cause::limit;
  std::string name;
  std::string jobid;
  std::optional<std::uint32_t> job_uid;  // whose that job is, if it is registered
  std::string account;                   // likewise; "": not known
  std::string rule;                      // of its requests; "": not known
  // When it began, in bytes each second: its own limit, or a coordinator's if that is lower. 0:
  // none, or not known.
  std::uint64_t rate = 0;
  std::uint64_t rules = 0;  // the version in force when it ended
  WallTime begin = {};
  WallTime end = {};
  Duration held = {};       // the head of its queue, by this cause
  std::uint64_t bytes = 0;  // moved in that time
  std::uint64_t operations = 0;
  Duration longest_wait = {};
  Loans loans;  // in that time, if they are the cause
};

// Finds spells in what virtual PFSes did each second. A spell has seconds in which the cause held a
// head for a tenth or more, or loans, and at most kQuiet others between two of them. Another share
// or another rule begins another spell.
class SpellWatch {
 public:
  static constexpr int kQuiet = 5;  // seconds
  // Loans go on all the time. Their spells end after so long, so that a statement about some time
  // has little of what was before.
  static constexpr std::chrono::minutes kLongestLoans{10};

  // A second has ended. Appends the spells that ended before it to `ended`.
  void add(const stage::History::Second& second, std::span<const stage::Activity> activities,
           std::vector<Spell>& ended);
  // Ends them all.
  void end_all(std::vector<Spell>& ended);
  // Those that go on, as they are by now.
  [[nodiscard]] std::vector<Spell> open() const;

 private:
  using Key = std::pair<stage::VirtualPfsId, Spell::Cause>;
  struct Open {
    Spell spell;
    const stage::VirtualPfsInfo* info = nullptr;  // for comparison only
    int quiet = 0;
    // What was done in quiet seconds: it counts if the spell goes on.
    std::uint64_t quiet_bytes = 0;
    std::uint64_t quiet_operations = 0;
  };

  void add(const stage::History::Second& second, const stage::Activity& activity,
           Spell::Cause cause, std::vector<Spell>& ended);

  std::map<Key, Open> open_;
};

}  // namespace vpfs::insight
