// Jobs come and go for ever: their virtual PFSes are retired, and no job pays for another.
#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/edf.h"
#include "stage/stage.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTemplate = "job-{jobid}";
constexpr Duration kIdle = 5s;

Config config_of(const std::string& policy) {
  Config config;
  config.policy = policy;
  config.scheduler.depth.requests = 6;
  config.scheduler.own.of<EdfSettings>().capacity = 100 * kMiB;
  config.scheduler_per_target = true;
  config.cost.per_request = {};
  config.virtual_pfs = {{.name = kTemplate, .share = {.weight = 2}}};
  if (policy == "tbf") config.virtual_pfs.front().share.rate = {kMiB};
  config.idle = kIdle;
  return config;
}

// A stage with workers that keep the numbers of known jobs, as the proxy's workers do. A second
// count of each job's work goes by its name.
class JobChurn {
 public:
  JobChurn(const std::string& policy, std::uint64_t seed)
      : random_(seed), stage_(config_of(policy), now_) {
    for (int i = 0; i < 6; ++i) client_ = stage_.join_client("node");
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += std::chrono::milliseconds(random_() % 40);
      first_job_ += random_() % 20 == 0 ? 1 : 0;
      switch (random_() % 8) {
        case 0:
        case 1:
        case 2:
          come();
          break;
        case 3:
        case 4:
          end_some();
          break;
        case 5:
          disturb_some();
          break;
        case 6:
          retire();
          break;
        case 7:
          acknowledge(random_() % workers_.size());
          break;
      }
      let_go();
    }
  }

  // The counts by number must equal those by name.
  void check() {
    std::uint64_t done = stage_.virtual_pfs().retired().counters.done.all().bytes;
    for (const AppId app : stage_.virtual_pfs().everybody()) {
      const std::string& name = stage_.virtual_pfs()[app].info->name;
      if (app == AppId{0}) continue;  // "default" has no job
      const std::uint64_t bytes = stage_.virtual_pfs().counters(app).done.all().bytes;
      const Job& job = jobs_[name];
      ASSERT_EQ(bytes, job.done - job.done_before(stage_.virtual_pfs()[app].generation, app))
          << name;
      done += bytes;
    }
    ASSERT_EQ(done, done_);
  }
  void finish() {
    while (!requests_.empty()) abandon(requests_.begin());
    now_ += 2 * kIdle;
    for (int i = 0; i < 3; ++i) {
      retire();
      for (std::size_t worker = 0; worker < workers_.size(); ++worker) acknowledge(worker);
    }
    retire();
  }

  [[nodiscard]] std::size_t rows() const { return stage_.rows(); }
  [[nodiscard]] std::uint64_t retired() const { return stage_.virtual_pfs().retired().count; }
  [[nodiscard]] std::size_t there() const { return stage_.virtual_pfs().everybody().size(); }
  [[nodiscard]] std::uint64_t first_job() const { return first_job_; }

 private:
  struct Job {
    std::uint64_t done = 0;
    std::map<VirtualPfsId, std::uint64_t> before;  // of each number that it had, when it got it
    [[nodiscard]] std::uint64_t done_before(std::uint32_t generation, AppId app) const {
      return before.at({.app = app, .generation = generation});
    }
  };
  struct Request : Held {
    std::string name;
  };
  using Requests = std::list<Request>;
  struct WorkerNames {
    std::map<std::string, VirtualPfsId> known;
    std::uint64_t epoch = 0;
  };

  VirtualPfsId find(WorkerNames& worker, const std::string& name) {
    if (const auto found = worker.known.find(name); found != worker.known.end()) {
      return found->second;
    }
    const VirtualPfsId id = stage_.find({.virtual_pfs = name, .declared_name = kTemplate}, now_).id;
    jobs_[name].before.try_emplace(id, jobs_[name].done);
    return worker.known[name] = id;
  }

  void come() {
    WorkerNames& worker = workers_[random_() % workers_.size()];
    const std::string name = "job-" + std::to_string(first_job_ + random_() % 10);
    const VirtualPfsId id = find(worker, name);
    Request& io = requests_.emplace_back();
    io.name = name;
    io.app = id.app;
    io.generation = id.generation;
    io.kind = static_cast<IoKind>(random_() % 2);
    io.asked = io.size = {1 + random_() % 100'000};
    io.size_is_estimated = random_() % 4 == 0;
    io.cost = std::max<Cost>(io.size.count, 1);
    io.arrival = now_;
    io.device = static_cast<std::uint32_t>(random_() % 3);
    if (random_() % 3 == 0) io.client = client_;
    random_() % 5 == 0 ? stage_.park(io, SlowClient{static_cast<std::uint8_t>(random_() % 3)}, now_)
                       : stage_.arrive(io, now_);
  }

  void let_go() {
    std::vector<Held*> released;
    (void)stage_.release(now_, released);
    for (Held* io : released) {
      if (io->state == Held::State::excess)
        std::erase_if(requests_, [&](auto& each) { return &each == io; });
      else if (random_() % 4 != 0)
        Stage::took_over(*io);
    }
  }

  void end_some() {
    for (auto each = requests_.begin(); each != requests_.end();) {
      const auto io = each++;
      const bool may = io->state == Held::State::outstanding || io->state == Held::State::given_up;
      if (!may || random_() % 2 != 0) continue;
      const std::uint64_t moved = random_() % 120'000;
      const bool refused = io->state == Held::State::outstanding && random_() % 8 == 0;
      stage_.end(*io, {.moved = {moved}, .failed = random_() % 8 == 0, .refused = refused}, now_);
      if (!refused) {
        jobs_[io->name].done += moved;
        done_ += moved;
      }
      requests_.erase(io);
    }
  }

  void disturb_some() {
    for (auto each = requests_.begin(); each != requests_.end();) {
      const auto io = each++;
      switch (random_() % 8) {
        case 0:
          abandon(io);
          break;
        case 1:
          if (stage_.refuse(*io, now_)) requests_.erase(io);
          break;
        case 2:
          (void)stage_.give_up_slot(*io, now_);
          break;
        case 3:
          (void)stage_.take_back(*io, now_);
          break;
        case 4:
          if (io->state == Held::State::parked) stage_.arrive(*io, now_);
          break;
        case 5:
          Stage::took_over(*io);
          break;
        default:
          break;
      }
    }
  }
  void abandon(Requests::iterator io) {
    stage_.abandon(*io, now_);
    requests_.erase(io);
  }

  // As Dispatcher::retire_idle() does.
  void retire() {
    const auto knows = [&](const WorkerNames& worker) { return worker.epoch == epoch_; };
    while (stage_.has_idle() && std::ranges::all_of(workers_, knows)) {
      stage_.retire(1 + random_() % 3, now_);
    }
    if (stage_.has_idle()) return;
    stage_.find_idle(stage_.rows(), now_);
    if (stage_.has_idle()) ++epoch_;
  }
  void acknowledge(std::size_t index) {
    WorkerNames& worker = workers_[index];
    if (worker.epoch == epoch_) return;
    worker.known.clear();
    worker.epoch = epoch_;
  }

  std::mt19937_64 random_;
  TimePoint now_ = TimePoint(100s);
  Stage stage_;
  ClientId client_{};
  std::array<WorkerNames, 3> workers_;
  std::uint64_t epoch_ = 0;
  Requests requests_;
  std::map<std::string, Job> jobs_;
  std::uint64_t first_job_ = 0;
  std::uint64_t done_ = 0;
};

class StageChurn : public ::testing::TestWithParam<const char*> {};

TEST_P(StageChurn, RowsStayFewAndNoneIsChargedForAnother) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    JobChurn churn(GetParam(), seed);
    std::size_t rows = 0;
    for (int round = 0; round < 40; ++round) {
      churn.run(250);
      churn.check();
      if (HasFatalFailure()) return;
      if (round == 9) rows = churn.rows();
    }
    EXPECT_GT(churn.first_job(), 300U);
    EXPECT_GT(churn.retired(), 200U);
    EXPECT_LE(churn.rows(), 2 * rows) << "as many as there are at a time, however many there were";
    churn.finish();
    EXPECT_EQ(churn.there(), 1U) << "default alone";
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, StageChurn,
                         ::testing::Values("sfq", "tbf", "adaptbf", "edf", "fifo"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace vpfs::stage
