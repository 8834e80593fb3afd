#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/allocation/cycle_types.h"
#include "control/coordinator/links/stage_requests.h"
#include "control/site/site_size.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// The connected stages, and what became of the site's rules there: each stage that takes them gets
// them when it joins and after each change. Belongs to the coordinator's thread.
class SiteStages {
 public:
  // One stage.
  struct Member {
    allocation::StageId id;
    const StageHello* hello = nullptr;
    bool has_newest = false;            // the present rules are in force there
    bool is_asked = false;              // its answer is to come, or its turn to be sent them
    std::vector<std::string> warnings;  // of its last answer
    std::string problem;                // why it does not have the newest; "": nothing is known
  };
  struct Limits {
    Duration patience = std::chrono::seconds(10);  // for the answer of a stage
    // Before a stage is sent the rules again that could not take them.
    Duration pause = std::chrono::seconds(10);
    std::size_t most_bytes = kMostSiteBytes;
    std::size_t most_lines = 50;  // of when_answered()
    // That are sent in one turn of the loop, beyond the first stage: cycles come between.
    std::size_t bytes_at_once = std::size_t{1} << 20U;
    std::size_t stages_at_once = 64;
  };

  // Both outlive it.
  SiteStages(asio::io_context& context, const Clock& clock)
      : SiteStages(context, clock, Limits()) {}
  SiteStages(asio::io_context& context, const Clock& clock, const Limits& limits)
      : context_(context), clock_(clock), limits_(limits) {}
  // Comes before all else; it outlives the use of this.
  void use(StageRequests& requests) { requests_ = &requests; }
  // From now on the rules are sent with that term, and only while `may_send` is true. Null: without
  // a term, always.
  void lead(std::function<std::uint64_t()> term, std::function<bool()> may_send) {
    term_ = std::move(term);
    may_send_ = std::move(may_send);
  }

  void joined(allocation::StageId stage);
  void left(allocation::StageId stage);
  // The rules from now on; their term does not count. Until the first call stages keep what they
  // have. Returns whether they are other ones than before.
  bool set(control::Site site);
  // Sends again where it is time. Call it once a second.
  void tick();

  // Calls `done` in a later turn, once all stages have answered the present rules or `patience` is
  // over: with what an administrator should know, one line each.
  using Told = std::function<void(std::vector<std::string> lines)>;
  void when_answered(Duration patience, Told done);
  // After this, no `done` is called.
  void stop() {
    waiting_.clear();
    due_.clear();
  }

  // In the order of names.
  [[nodiscard]] std::vector<Member> members() const;
  [[nodiscard]] std::vector<AbsentStage> absent() const { return requests_->absent(); }

 private:
  struct Stage {
    Member member;
    std::uint64_t connection = 0;  // the number of its stay here
    std::uint64_t version = 0;     // that it was sent last
    std::optional<TimePoint> again_at;
  };
  struct Due {
    std::uint32_t stage;
    std::uint64_t connection;
  };
  struct Waiting {
    asio::steady_timer timer;
    Told done;
  };

  // Its turn to be sent the newest comes with send_some().
  void ask(Stage& stage);
  void send_some();
  void send(Stage& stage);
  void set_asked(Stage& stage, bool is_asked);
  void answered(allocation::StageId id, std::uint64_t connection, std::uint64_t version,
                const control::Envelope& answer);
  void tell_those_who_wait();
  [[nodiscard]] std::vector<std::string> lines() const;

  asio::io_context& context_;
  const Clock& clock_;
  const Limits limits_;
  StageRequests* requests_ = nullptr;
  std::function<std::uint64_t()> term_;
  std::function<bool()> may_send_;
  std::map<std::uint32_t, Stage> stages_;  // by the index of the StageId
  std::size_t asked_ = 0;                  // of them
  std::deque<Due> due_;                    // whose turn to be sent is to come
  bool goes_on_ = false;                   // with them, in a later turn of the loop
  control::Envelope site_;                 // what is sent
  std::string text_;                       // of it, to compare
  std::uint64_t version_ = 0;              // of site_; 0: there is none yet
  std::uint64_t connections_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Waiting>> waiting_;
  std::uint64_t last_waiting_ = 0;
};

}  // namespace vpfs::coordinator
