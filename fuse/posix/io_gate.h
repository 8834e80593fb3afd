#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/gate/stage_gate.h"
#include "control/host/prepared_config.h"
#include "fuse/posix/config.h"
#include "fuse/posix/held_reads.h"
#include "fuse/posix/io_request.h"
#include "fuse/posix/lock_watch.h"
#include "stage/rules/known_identities.h"

namespace vpfs::fuse {

using MountSettings = control::PreparedConfig<Config>;
using MountSettingsPtr = std::shared_ptr<const MountSettings>;  // shared with the gate's owner

// The stage of a mounted directory: every request passes it before any thread works on it. Threads
// bring requests, and take away those that may go, also those of other threads. What keeps a lock
// of the kernel that others may wait for goes in time, whatever its share says (LockWatch). Its
// virtual PFS owes what it costs, which delays what keeps no lock. Thread-safe.
class IoGate final : public control::StageGate {
 public:
  // `ask_again` is called by any thread when release() has to be called soon, with the latest time
  // for it; it must only post. `seed` is unknown to the mount's users.
  IoGate(MountSettingsPtr settings, std::function<void(TimePoint by)> ask_again, std::uint64_t seed,
         TimePoint now);

  // Puts a configuration into force.
  void use(Config config, TimePoint now);
  // The same with another part of the stage alone.
  void reconfigure(const stage::Config& config, TimePoint now) override;
  // Those in force. For the thread that changes them.
  [[nodiscard]] const MountSettingsPtr& settings() const { return settings_; }

  // A request has come; `size` bytes, or zero for names and attributes. Appends to `go` what may go
  // now. REQUIRES: its fields beside those of the stage are set, and its kind.
  void arrive(IoRequest& request, std::uint64_t size, TimePoint now, std::vector<IoRequest*>& go);
  // A request that went has ended, as its `moved` and `failed` say.
  void end(IoRequest& request, TimePoint now, std::vector<IoRequest*>& go);
  void release(TimePoint now, std::vector<IoRequest*>& go);
  // Those who have used the mount since the rules changed, and their requests.
  struct User {
    uid_t uid = 0;
    std::string jobid;           // as the process shows it, or else as its registration has it
    IoKind kind = IoKind::read;  // of the first
    stage::Place place;
    std::uint8_t traffic_class = 0;
    bool job_not_registered = false;  // so the id does not count
    bool job_from_registration = false;
    std::uint64_t requests = 0;
  };
  struct Users {
    std::vector<User> listed;  // the first kMostUsers
    // All others together. One that was not seen for long may count twice.
    std::uint64_t others = 0;
    std::uint64_t requests_of_others = 0;
  };
  static constexpr std::size_t kMostUsers = 4096;
  [[nodiscard]] Users users(TimePoint now);
  // Requests whose job id was ignored. Any thread.
  [[nodiscard]] std::uint64_t jobs_not_registered() const { return jobs_not_registered_; }

  // The holder of a request that is held under the kernel's number.
  [[nodiscard]] std::optional<Holder> holder_of(std::uint64_t unique, TimePoint now);
  // Takes a held request out. Null: it is not held any more.
  [[nodiscard]] IoRequest* withdraw(std::uint64_t unique, TimePoint now,
                                    std::vector<IoRequest*>& go);
  // Ends locks of pages that have lasted for too long (HeldReads): takes out read-ahead, to be
  // answered with an error, and lets go what a process may wait for, which its virtual PFS owes.
  [[nodiscard]] std::vector<IoRequest*> unlock_pages(TimePoint now, std::vector<IoRequest*>& go);
  // Files with held reads. Any thread.
  [[nodiscard]] std::size_t files_with_held_reads() const { return files_with_held_reads_; }
  // A hand-over to another process. While the gate is frozen, nothing goes. held(): what is held
  // then, which stays so. hand_on(): it belongs to the other process, and is the caller's to free.
  void freeze(bool on);
  [[nodiscard]] std::vector<IoRequest*> held(TimePoint now);
  [[nodiscard]] std::vector<std::uint64_t> held_numbers(TimePoint now);
  [[nodiscard]] std::vector<IoRequest*> hand_on(TimePoint now);
  // Calls visit(request) for one that is held under that number, with the lock held, for less than
  // a millisecond.
  template <typename Visitor>
  void visit_held(std::uint64_t unique, TimePoint now, Visitor visit) {
    inspect(now, [&](stage::Stage&, TimePoint) {
      const auto place = held_.find(unique);
      if (place != held_.end()) visit(*place->second);
    });
    give_way();
  }
  // The other way round, while this gate is frozen: requests that have arrived at the process
  // before, in the order of their arrival.
  void readmit(std::span<IoRequest* const> requests, TimePoint now);
  void take_on(std::uint64_t jobs_not_registered) { jobs_not_registered_ = jobs_not_registered; }

  // All that are held, and those that go instead.
  [[nodiscard]] std::vector<IoRequest*> withdraw_all(TimePoint now);

 private:
  struct Belonging {
    stage::Place place;
    std::uint8_t traffic_class = 0;
    bool job_not_registered = false;
    std::size_t user = 0;  // in users_; kOther: it is not listed
  };
  static constexpr std::size_t kOther = SIZE_MAX;

  void ask_again() override { ask_again_(TimePoint::min()); }
  void forget_numbers() override {
    known_.forget_all();
    users_.clear();
    others_ = requests_of_others_ = 0;
  }

  [[nodiscard]] Belonging belonging_of(const IoRequest& request, stage::Stage& stage,
                                       TimePoint now);
  [[nodiscard]] stage::Held::Source source_of(const IoRequest& request, stage::Recorder& recorder);
  [[nodiscard]] TimePoint release(stage::Stage& stage, TimePoint now, std::vector<IoRequest*>& go);
  // The request is held from now on, and when it is not any more.
  void hold(IoRequest& request);
  [[nodiscard]] std::vector<IoRequest*> abandon_held(stage::Stage& stage, TimePoint now);
  void hold_no_more(IoRequest& request);
  // Until when a request that has come may be held.
  [[nodiscard]] TimePoint held_until(const IoRequest& request, TimePoint now);
  // Lets go what may go after `change`, which gets the stage and the time.
  template <typename Change>
  void change(TimePoint now, std::vector<IoRequest*>& go, Change change);

  const std::function<void(TimePoint by)> ask_again_;
  // The lock guards what follows.
  MountSettingsPtr settings_;
  stage::KnownIdentities<Belonging> known_;
  std::deque<User> users_;
  std::uint64_t others_ = 0;
  std::uint64_t requests_of_others_ = 0;
  // The last origin that a recording was told of: most requests are of the process before.
  stage::Origin last_origin_;
  std::uint32_t last_origin_number_ = 0;
  std::uint32_t last_recording_ = 0;
  std::atomic<std::uint64_t> jobs_not_registered_ = 0;
  bool frozen_ = false;
  std::unordered_map<std::uint64_t, IoRequest*> held_;
  HeldReads held_reads_;
  std::atomic<std::size_t> files_with_held_reads_ = 0;
  LockWatch locks_;
  // Those that must go at a time, with the kernel's number.
  std::set<std::pair<TimePoint, std::uint64_t>> go_by_;
  // Kept between calls to save allocations.
  std::vector<stage::Held*> let_go_;
  std::vector<std::optional<std::string_view>> hints_;
  std::string key_;
};

}  // namespace vpfs::fuse
