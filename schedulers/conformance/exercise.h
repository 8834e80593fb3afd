#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/policy_kind.h"
#include "schedulers/scheduler.h"

namespace vpfs::conformance {

// A scheduler under random use beside a plain record of its expected state. After the first thing
// that is not as it should be, problem() says what, and nothing more is done.
class Exercise {
 public:
  // `holds_back`: the policy may keep any request back until a time that it names. `kind` outlives
  // this.
  Exercise(const PolicyKind& kind, const SchedulerSettings& settings, bool holds_back,
           std::uint32_t flows, std::uint64_t seed);

  [[nodiscard]] std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  // Sets any field of a share, known to the policy or not.
  void change_share(std::uint32_t app);
  void remove(std::uint32_t app);
  void remove_all();
  // Any limits, zero among them. A policy without them says so and changes nothing.
  void allocate(std::uint32_t app);
  // Service elsewhere may be as large as a request.
  void count_elsewhere(std::uint32_t app);

  void enqueue(IoRequest& request);
  // Sends what may be sent; the order inside each flow must be that of arrival.
  void dispatch_all();
  void complete_one(std::vector<IoRequest*>& free);
  void withdraw_one(std::vector<IoRequest*>& free);

  // Time stops or jumps, but never goes back.
  void pass_time();
  // Goes to the time at which the scheduler wants to be asked again, if any.
  void pass_wait();

  void check_status();

  [[nodiscard]] std::size_t flows() const { return limited_.size(); }
  [[nodiscard]] bool drained() const { return queued_ == 0 && outstanding_.empty(); }
  // "": everything was as it should be.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  // From 1 to `most`, all magnitudes alike.
  [[nodiscard]] std::uint64_t draw_magnitude(std::uint64_t most);
  [[nodiscard]] bool expect(bool is_so, std::string_view otherwise);
  [[nodiscard]] std::deque<IoRequest*>& queue_of(const IoRequest& request);
  // A request's part of the depth in cost: at most half of it.
  [[nodiscard]] Cost counted(const IoRequest& request) const;
  [[nodiscard]] bool check_sent(const IoRequest* request);
  [[nodiscard]] bool every_head_fits() const;
  void check_nothing_may_go();
  void check_flow(std::uint32_t app);

  const PolicyKind& kind_;
  std::unique_ptr<Scheduler> scheduler_;
  Depth depth_;
  bool holds_back_;
  std::size_t classes_;
  std::vector<std::deque<IoRequest*>> waiting_;  // by flow and class
  std::vector<bool> limited_;
  std::vector<bool> allocated_;
  std::vector<IoRequest*> outstanding_;
  Cost outstanding_cost_ = 0;
  std::size_t queued_ = 0;
  TimePoint now_ = {};
  TimePoint until_ = kNever;  // of the last answer without a request
  std::mt19937_64 random_;
  std::string problem_;
};

}  // namespace vpfs::conformance
