#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/store/site_store.h"

namespace vpfs::coordinator {

// Has the office confirmed before the coordinator tells what its book has. A leader that another
// has taken for dead goes on for up to a lease, and lacks what is changed meanwhile. Readers share
// confirmations, and one begins a pause after the one before at the earliest: readers in a loop do
// not load the store. Belongs to the coordinator's thread.
class SiteReads {
 public:
  struct Limits {
    Duration patience = std::chrono::seconds(1);      // of a reader
    Duration pause = std::chrono::milliseconds(200);  // between the beginnings of confirmations
  };
  enum class Standing : std::uint8_t {
    leads,    // at some moment since it was asked: its book had all answered changes then
    unknown,  // the store has not said so in time
    lost,     // another coordinator has claimed the office
  };
  using Done = std::function<void(Standing)>;
  // Confirms the office with a call of the store that begins later, and tells what came of it.
  using Told = std::function<void(const control::SiteStore::Outcome<void>&)>;
  using Confirm = std::function<void(Told)>;

  // All outlive it. `confirm` is null where no other coordinator can lead.
  SiteReads(asio::io_context& context, const Clock& clock, Confirm confirm, const Limits& limits);

  // Calls `done` once: at once where no other can lead, and otherwise within the patience. What the
  // store does not do is tried again until then.
  void ask(Done done);
  // Nothing more is asked. Those that wait are told `lost`.
  void stop();

 private:
  struct Reader {
    Done done;
    TimePoint until;
  };
  using Readers = std::deque<Reader>;  // in the order in which they came

  // Confirms for those that wait, as soon as it may.
  void next();
  void begin();
  void answered(const control::SiteStore::Outcome<void>& outcome);
  void set_alarm();
  static void tell(Readers& to, Standing standing);
  static void tell_late(Readers& to, TimePoint now);

  const Clock& clock_;
  const Confirm confirm_;
  const Limits limits_;
  Readers asked_;    // for them the office is being confirmed
  Readers waiting_;  // for the next confirmation
  bool is_asking_ = false;
  bool is_stopped_ = false;
  TimePoint next_at_ = {};  // no confirmation begins before
  asio::steady_timer alarm_;
  asio::steady_timer pause_;
};

}  // namespace vpfs::coordinator
