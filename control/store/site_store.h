#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "control/store/leadership.h"
#include "control/store/state_store.h"

namespace vpfs::control {

// Where the coordinators of a site keep slow state: which one leads, and the records of rules and
// jobs. Rates and counters never go there.
//
// One coordinator leads at a time. It takes the office with claim(), which compares and swaps, and
// confirms it again and again. What it writes is fenced: once another has claimed the office, each
// further call fails with Why::lost and changes nothing. An append() under way at that moment may
// be in what the next leader loads, although it fails. One that has succeeded is in what each later
// leader loads.
//
// Calls block, some of them for seconds, so they belong to a thread of their own. cancel() is for
// any thread.
class SiteStore {
 public:
  enum class Why : std::uint8_t {
    // The store does not answer. Whether the call was carried out is not known; calling it again
    // with the same arguments does it once, if nothing else was called meanwhile.
    unreachable,
    lost,     // another coordinator has claimed the office
    refused,  // a full disk, a missing right, ...: it was not carried out
    damaged,  // what is stored cannot be read; it stays as it is
  };
  struct Failure {
    Why why = Why::unreachable;
    std::string text;  // a sentence that names the place
  };
  template <typename T>
  using Outcome = std::expected<T, Failure>;

  struct Traits {
    bool has_standbys = false;  // more than one coordinator can use it
    // How long after it has begun to confirm the office a leader may go on, if that succeeds.
    Duration lease = {};
    // A leader that confirms changes Seen::beat. Otherwise the store itself knows when a lease has
    // ended, and says so with Seen::is_vacant.
    bool shows_beats = false;
    // When the office is vacant, or has not beaten for a lease, the leader before has confirmed
    // nothing for a lease. Otherwise it may have done so a moment ago.
    bool vacancy_is_certain = false;
  };
  struct Seen {
    std::optional<Leadership> leader;  // the last one; nothing: none has ever led
    // It has resigned, or its lease has ended: any coordinator may claim.
    bool is_vacant = true;
    std::uint64_t beat = 0;
    std::string version;           // of all this, for claim()
    std::uint64_t least_term = 1;  // no term below it may be claimed
  };

  virtual ~SiteStore() = default;

  [[nodiscard]] virtual Traits traits() const = 0;
  [[nodiscard]] virtual Outcome<Seen> look() = 0;
  // Takes the office if no other has claimed it since it was seen, whether it is vacant or not.
  // Also the first confirmation. REQUIRES: own.term >= seen.least_term.
  [[nodiscard]] virtual Outcome<void> claim(const Seen& seen, const Leadership& own) = 0;

  // The following REQUIRE a successful claim().
  [[nodiscard]] virtual Outcome<void> confirm() = 0;
  // Afterwards the office is vacant.
  [[nodiscard]] virtual Outcome<void> resign() = 0;
  // All records, oldest first. Call it before append() and replace().
  [[nodiscard]] virtual Outcome<StateStore::Loaded> load() = 0;
  // When it returns, the record survives the loss of this host, or of as many as the store can
  // lose.
  [[nodiscard]] virtual Outcome<void> append(std::string_view record) = 0;
  // Replaces all records by one that has their sense.
  [[nodiscard]] virtual Outcome<void> replace(std::string_view record) = 0;
  // Whether replace() would make it much smaller.
  [[nodiscard]] virtual bool wants_replacing() const = 0;

  // Waits until another one may have claimed the office, or the leader resigned, or for `patience`.
  virtual void wait(Duration patience) = 0;
  // Any thread: wait() ends, and so does a call under way, as soon as it can. For good.
  virtual void cancel() = 0;
};

}  // namespace vpfs::control
