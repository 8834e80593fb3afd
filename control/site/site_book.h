#pragma once

#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/admin/live_state.h"
#include "control/admin/rule_administration.h"
#include "control/site/site_size.h"
#include "control/store/store_thread.h"
#include "control/wire/control.pb.h"
#include "control/wire/rights.h"

namespace vpfs::coordinator {

// Changes of a site's rules and jobs, one after the other: each is prepared, kept in the store,
// and only then carried out and answered. The store may take seconds, or not answer at all: the
// coordinator's thread goes on meanwhile, and later changes wait.
//
// A change whose outcome the store has not told is asked for again until it has. What ends by
// itself has ended at its time, kept or not: its times say the same to the next leader. Belongs to
// the coordinator's thread.
class SiteBook {
 public:
  struct Limits {
    Duration patience = std::chrono::seconds(5);      // of whoever asked for a change
    Duration pause = std::chrono::milliseconds(500);  // before a store is asked again
    Duration most_pause = std::chrono::seconds(30);   // where it refuses again and again
    std::size_t most_waiting = 1'000;
    // The longest message to stages. A change that makes it longer is refused: else it would be
    // answered as done, and reach no stage.
    std::size_t most_bytes = kMostSiteBytes;
  };
  // What to answer. It is carried out by then, unless it is an error.
  using Done = std::function<void(std::expected<control::Envelope, control::Error>)>;

  // All outlive it. `is_behind`: the book has changed since its records were loaded. `lost` is
  // called once, when the store says that another coordinator leads.
  SiteBook(asio::io_context& context, const Clock& clock, control::StoreCaller& store,
           control::LiveState& live, control::RuleAdministration& rules, bool is_behind,
           std::function<void()> lost, const Limits& limits);

  // REQUIRES: RuleAdministration::changes_book(). `read`: what names_of() has read for it. Calls
  // `done` once, now or later.
  void change(control::Envelope request, const control::Caller& caller, control::ReadRequest read,
              Done done);
  // Ends what is due, unless a change is being kept. Then that follows it.
  void tick() { next(); }
  // Nothing more is asked of the store. Callers that wait are told that this coordinator leads no
  // more.
  void stop();

 private:
  struct Waiting {
    control::Envelope request;
    control::Caller caller;
    control::ReadRequest read;
    Done done;
    TimePoint until;                // it is answered then
    std::uint64_t read_number = 0;  // of the book's last operation when `read` was read
    bool was_asked_again = false;   // after the book was kept as a whole
  };
  struct Kept {
    control::SiteStore::Outcome<void> outcome;
    bool wants_replacing = false;
    bool is_uncertain = false;  // an earlier try may have been carried out
  };

  void next();
  void begin(Waiting waiting);
  [[nodiscard]] std::optional<control::Error> why_too_long(const stage::Change& change);
  void end_due(const stage::BookOperation& due);
  // Appends a record until the store has said whether it did.
  void keep(std::string record, bool is_uncertain, std::function<void(const Kept&)> kept);
  void keep_whole();
  void keep_whole_later();
  void carry_out(const stage::Change& change, bool wants_replacing);
  void refused(const Kept& kept);
  void refuse_waiting(const control::SiteStore::Failure& why);
  void failed(const control::SiteStore::Failure& failure);
  void works();
  void answer_late();
  void set_alarm();
  [[nodiscard]] static control::Error not_made(const std::string& why);

  const Clock& clock_;
  control::StoreCaller& store_;
  control::LiveState& live_;
  control::RuleAdministration& rules_;
  const std::function<void()> lost_;
  const Limits limits_;
  std::deque<Waiting> waiting_;     // the first ones first
  std::optional<Waiting> current_;  // whose record is being kept; without `done` it was answered
  bool is_busy_ = false;            // something is being kept
  // The message that stages get has at most so many bytes; nothing: it has to be made to know that.
  std::optional<std::size_t> size_;
  bool is_behind_;            // the store lacks something that the book has, or has more
  bool wants_whole_ = false;  // a store that takes no record may take the whole book
  bool is_long_ = false;      // the store has many records, which one could replace
  Duration pause_;            // before a store that refuses is asked again
  bool is_stopped_ = false;
  bool is_lost_ = false;      // another coordinator leads
  bool is_troubled_ = false;  // the store does not answer, which is in the log
  asio::steady_timer retry_;
  asio::steady_timer alarm_;
};

}  // namespace vpfs::coordinator
