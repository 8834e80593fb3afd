// Rules come and go, bypass goes on and off, and requests are exempt or run beside shadow limits,
// all at random: nothing is lost, no slot leaks, and all counts add up.
#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "schedulers/policies/edf.h"
#include "stage/stage.h"

namespace vpfs::stage {
namespace {

using namespace std::chrono_literals;

constexpr int kRuleNames = 8;  // of rules: those with odd numbers are shadow rules

bool is_shadow(int rule) {
  return rule % 2 == 1;
}
std::string target_of(int rule) {
  return rule < 4 ? "job-" + std::to_string(rule) + "-{jobid}" : "v" + std::to_string(rule);
}

class RuleChurn {
 public:
  struct Options {
    bool with_shadow = true;
    bool with_retiring = true;
  };
  RuleChurn(std::string policy, std::uint64_t seed, Options options)
      : policy_(std::move(policy)), options_(options), random_(seed) {
    for (int rule = 0; rule < kRuleNames; ++rule) active_[rule] = true;
    take_on(config());
    for (WorkerRules& worker : workers_) worker.rules = rules_;
    for (int i = 0; i < 6; ++i) client_ = stage_->join_client("node");
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += std::chrono::milliseconds(random_() % 30);
      switch (random_() % 16) {
        default:
          come();
          break;
        case 6:
        case 7:
        case 8:
        case 9:
          end_some();
          break;
        case 10:
        case 11:
          disturb_some();
          break;
        case 12:
          reload();
          break;
        case 13:
          if (random_() % 8 == 0) stage_->bypass(!stage_->bypassed(), now_);
          break;
        case 14:
          use_rules(workers_[random_() % workers_.size()]);
          break;
        case 15:
          if (options_.with_retiring) retire();
          break;
      }
      let_go();
    }
  }

  void check() {
    Counters sum = stage_->virtual_pfs().retired().counters;
    Amount unscheduled = stage_->virtual_pfs().retired().histograms.unscheduled;
    std::uint64_t samples = samples_of(stage_->virtual_pfs().retired().histograms);
    for (const AppId app : stage_->virtual_pfs().everybody()) {
      const Counters& counters = stage_->virtual_pfs().counters(app);
      sum += counters;
      sum.queued += counters.queued;
      sum.outstanding += counters.outstanding;
      if (const auto& record = stage_->virtual_pfs()[app].histograms) {
        unscheduled += record->unscheduled;
        samples += samples_of(*record);
      }
    }
    const auto in = [&](Held::State state) {
      return static_cast<std::size_t>(
          std::ranges::count(requests_, state, [](const Held& io) { return io.state; }));
    };
    ASSERT_EQ(sum.arrived.all().requests, counted_);
    ASSERT_EQ(sum.done.all().requests, ended_);
    ASSERT_EQ(samples, ended_);
    ASSERT_EQ(sum.refused.all().requests, refused_);
    ASSERT_EQ(sum.excess, excess_);
    ASSERT_EQ(counted_, ended_ + refused_ + excess_ + abandoned_ + requests_.size());
    ASSERT_EQ(sum.queued.requests, in(Held::State::queued));
    ASSERT_EQ(stage_->queued(), in(Held::State::queued));
    const std::size_t there = in(Held::State::released) + in(Held::State::outstanding);
    ASSERT_EQ(sum.outstanding.requests, there);
    ASSERT_EQ(stage_->outstanding(), there);
    ASSERT_EQ(unscheduled.requests, unscheduled_);
    check_rules();
  }

  void finish() {
    while (!requests_.empty()) abandon(requests_.begin());
    EXPECT_EQ(stage_->queued() + stage_->outstanding() + stage_->unscheduled(), 0U);
    for (Lanes::Lane& lane : stage_->lanes()) {
      EXPECT_EQ(lane.scheduler->load().requests, 0U);
      EXPECT_EQ(lane.scheduler->load().cost, 0U);
      EXPECT_EQ(lane.scheduler->queued(), 0U);
    }
  }

  // Which request left when, and when the stage wanted to be asked again.
  using Trace = std::vector<std::pair<std::uint64_t, TimePoint>>;
  [[nodiscard]] const Trace& trace() const { return trace_; }
  [[nodiscard]] std::uint64_t unscheduled() const { return unscheduled_; }
  [[nodiscard]] std::uint64_t shadow_hits() const { return shadow_hits_; }

 private:
  // A rule at the time when its name was looked up.
  struct Mark {
    std::string name;
    std::uint64_t life = 0;  // zero: there was none
  };
  struct Request : Held {
    std::uint64_t number = 0;
  };
  using Requests = std::list<Request>;
  struct Known {
    Place place;
    Mark rule;
    Mark shadow;
  };
  struct WorkerRules {
    std::shared_ptr<const std::vector<RuleConfig>> rules;
    std::map<std::string, Known> known;
    std::uint64_t epoch = 0;
  };
  // A name's present life: a rule that goes and returns has another one.
  struct Life {
    std::uint64_t number = 0;
    std::uint64_t hits = 0;
  };

  static std::uint64_t samples_of(const Histograms& record) {
    const IoStatistics& io = record.statistics;
    EXPECT_EQ(io.read_bytes.samples, io.read_time.samples);
    return io.read_bytes.samples + io.write_bytes.samples;
  }

  Config config() {
    Config config;
    config.policy = policy_;
    config.scheduler.depth.requests = 4 + static_cast<std::uint32_t>(random_() % 3);
    config.scheduler.own.of<EdfSettings>().capacity = 100 * kMiB;
    config.scheduler.classes = {.mode = TrafficClasses::Mode::apportion,
                                .classes = {{.name = "x", .share = 2}, {.name = "y"}}};
    config.scheduler_per_target = true;
    config.cost.per_request = {};
    config.idle = 2s;
    for (int rule = 0; rule < kRuleNames; ++rule) {
      if (!active_[rule]) continue;
      const bool has_limit = policy_ == "tbf" || policy_ == "sfq" || is_shadow(rule);
      const std::uint64_t rate = has_limit ? kMiB << (rule % 3) : 0;
      config.virtual_pfs.push_back({.name = target_of(rule), .share = {.rate = {rate}}});
      config.rules.push_back({.name = "r" + std::to_string(rule),
                              .mode = is_shadow(rule) ? RuleMode::shadow : RuleMode::enforce,
                              .virtual_pfs = target_of(rule),
                              .exempt = rule == 2});
    }
    return config;
  }

  // Workers have the shadow rules in any case, so that they ask the stage equally often.
  void take_on(Config config) {
    rules_ = std::make_shared<const std::vector<RuleConfig>>(config.rules);
    if (!options_.with_shadow) {
      config.virtual_pfs = enforced_virtual_pfs(config);
      std::erase_if(config.rules, [](const auto& rule) { return rule.mode == RuleMode::shadow; });
    }
    if (stage_) {
      stage_->reconfigure(config, now_);
    } else {
      stage_ = std::make_unique<Stage>(config, now_);
    }
    std::erase_if(lives_, [&](const auto& each) {
      return each.first != "default" &&
             std::ranges::find(config.rules, each.first, &RuleConfig::name) == config.rules.end();
    });
    lives_.try_emplace("default", Life{.number = ++life_});
    for (const RuleConfig& rule : config.rules) {
      if (!lives_.contains(rule.name)) lives_[rule.name] = {.number = ++life_};
    }
  }
  void reload() {
    bool& active = active_[static_cast<int>(random_() % kRuleNames)];
    active = !active;
    take_on(config());
  }
  void use_rules(WorkerRules& worker) {
    worker.rules = rules_;
    worker.known.clear();
    worker.epoch = epoch_;
  }

  // The index of a rule of this number in the worker's rules.
  static std::optional<std::uint32_t> index_of(const WorkerRules& worker, int rule) {
    const auto found =
        std::ranges::find(*worker.rules, "r" + std::to_string(rule), &RuleConfig::name);
    if (found == worker.rules->end()) return std::nullopt;
    return static_cast<std::uint32_t>(found - worker.rules->begin());
  }
  static std::string name_of(int rule, int job) {
    return rule < 4 ? "job-" + std::to_string(rule) + "-" + std::to_string(job) : target_of(rule);
  }
  const Known& find(WorkerRules& worker, int rule, int shadow, int job) {
    const std::optional<std::uint32_t> by = index_of(worker, rule);
    const std::optional<std::uint32_t> beside = index_of(worker, shadow);
    const std::string target = by ? name_of(rule, job) : "default";
    const auto [known, is_new] =
        worker.known.try_emplace(target + (beside ? " beside " + name_of(shadow, job) : ""));
    if (!is_new) return known->second;
    const Classifier::Match match = {
        .virtual_pfs = target,
        .declared_name = by ? target_of(rule) : "default",
        .rule = by.value_or(Classifier::kNoRule),
        .shadow_rule = beside.value_or(Classifier::kNoRule),
        .shadow_name = beside ? name_of(shadow, job) : "",
        .exempt = by && (*worker.rules)[*by].exempt,
    };
    const auto mark = [&](const std::string& name) {
      const auto found = lives_.find(name);
      return Mark{.name = name, .life = found == lives_.end() ? 0 : found->second.number};
    };
    known->second = {.place = stage_->find(match, now_, *worker.rules),
                     .rule = mark(by ? (*worker.rules)[*by].name : "default"),
                     .shadow = beside ? mark((*worker.rules)[*beside].name) : Mark{}};
    return known->second;
  }
  void count_hit(const Mark& mark) {
    const auto found = lives_.find(mark.name);
    if (found != lives_.end() && found->second.number == mark.life) ++found->second.hits;
  }

  void come() {
    WorkerRules& worker = workers_[random_() % workers_.size()];
    const int rule = static_cast<int>(random_() % (kRuleNames / 2) * 2);
    const int shadow = static_cast<int>(random_() % kRuleNames) | 1;
    const int job =
        static_cast<int>(random_() % 4) + static_cast<int>(now_.time_since_epoch() / 5s);
    Request& io = requests_.emplace_back();
    io.number = ++counted_;
    io.kind = static_cast<IoKind>(random_() % 2);
    io.asked = io.size = {1 + random_() % 200'000};
    io.size_is_estimated = random_() % 4 == 0;
    io.traffic_class = static_cast<std::uint8_t>(random_() % 2);
    io.device = static_cast<std::uint32_t>(random_() % 3);
    io.cost = io.size.count;
    io.arrival = now_;
    if (random_() % 3 == 0) io.client = client_;
    const Known& known = find(worker, rule, shadow, job);
    io.set_place(known.place);
    count_hit(known.rule);
    if (known.place.shadow != ShadowRef{}) {
      count_hit(known.shadow);
      ++shadow_hits_;
    }
    random_() % 6 == 0 ? stage_->park(io, SlowClient::none, now_) : stage_->arrive(io, now_);
  }

  void let_go() {
    std::vector<Held*> released;
    trace_.emplace_back(0, stage_->release(now_, released));
    for (Held* io : released) {
      trace_.emplace_back(static_cast<Request*>(io)->number, now_);
      if (io->state == Held::State::excess) {
        ++excess_;
        std::erase_if(requests_, [&](const Request& each) { return &each == io; });
        continue;
      }
      ++(io->unscheduled ? unscheduled_ : scheduled_);
      EXPECT_TRUE(io->unscheduled || (!io->exempt && !stage_->bypassed()));
      if (random_() % 4 != 0) Stage::took_over(*io);
    }
    for (const Request& io : requests_) {
      const bool may_wait = !io.exempt && !stage_->bypassed();
      EXPECT_TRUE(io.state != Held::State::queued || may_wait);
    }
  }

  void end_some() {
    for (auto each = requests_.begin(); each != requests_.end();) {
      const auto io = each++;
      const bool may = io->state == Held::State::outstanding || io->state == Held::State::given_up;
      if (!may || random_() % 2 != 0) continue;
      const bool refused = io->state == Held::State::outstanding && random_() % 8 == 0;
      stage_->end(
          *io, {.moved = {random_() % 220'000}, .failed = random_() % 8 == 0, .refused = refused},
          now_);
      ++(refused ? refused_ : ended_);
      requests_.erase(io);
    }
  }

  void disturb_some() {
    for (auto each = requests_.begin(); each != requests_.end();) {
      const auto io = each++;
      switch (random_() % 10) {
        case 0:
          abandon(io);
          break;
        case 1:
          if (!stage_->refuse(*io, now_)) break;
          ++refused_;
          requests_.erase(io);
          break;
        case 2:
          (void)stage_->give_up_slot(*io, now_);
          break;
        case 3:
          (void)stage_->take_back(*io, now_);
          break;
        case 4:
        case 5:
          if (io->state == Held::State::parked) stage_->arrive(*io, now_);
          break;
        case 6:
          Stage::took_over(*io);
          break;
        default:
          break;
      }
    }
  }
  void abandon(Requests::iterator io) {
    stage_->abandon(*io, now_);
    ++abandoned_;
    requests_.erase(io);
  }

  // As Dispatcher::retire_idle() does.
  void retire() {
    const auto knows = [&](const WorkerRules& worker) { return worker.epoch == epoch_; };
    while (stage_->has_idle() && std::ranges::all_of(workers_, knows)) stage_->retire(3, now_);
    if (stage_->has_idle()) return;
    stage_->find_idle(stage_->rows(), now_);
    if (stage_->has_idle()) ++epoch_;
  }

  void check_rules() {
    for (const auto& [name, life] : lives_) {
      const RuleRows::Row* const row = stage_->rules().row(stage_->rules().find(name));
      ASSERT_NE(row, nullptr) << name;
      ASSERT_EQ(row->hits, life.hits) << name;
      const auto report = stage_->shadows().report(name, now_);
      if (!report) continue;
      ASSERT_EQ(report->seen.requests, life.hits) << name;
      ASSERT_LE(report->would_hold.requests, report->seen.requests);
      ASSERT_GE(report->held, Duration::zero());
    }
    for (const AppId app : stage_->virtual_pfs().everybody()) {
      const std::string& name = stage_->virtual_pfs()[app].info->name;
      for (int rule = 1; rule < kRuleNames; rule += 2) {
        const std::string target = target_of(rule);
        ASSERT_FALSE(name.starts_with(target.substr(0, target.find('{')))) << name;
      }
    }
  }

  std::string policy_;
  Options options_;
  std::mt19937_64 random_;
  TimePoint now_ = TimePoint(100s);
  std::unique_ptr<Stage> stage_;
  ClientId client_{};
  std::map<int, bool> active_;
  std::shared_ptr<const std::vector<RuleConfig>> rules_;  // the stage's
  std::array<WorkerRules, 3> workers_;
  std::uint64_t epoch_ = 0;
  Requests requests_;
  std::map<std::string, Life> lives_;  // by rule
  std::uint64_t life_ = 0;
  std::uint64_t counted_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t excess_ = 0;
  std::uint64_t abandoned_ = 0;
  std::uint64_t scheduled_ = 0;
  std::uint64_t unscheduled_ = 0;
  std::uint64_t shadow_hits_ = 0;
  Trace trace_;
};

class RuleChurnTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RuleChurnTest, NothingIsLostAndAllCountsAddUp) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RuleChurn churn(GetParam(), seed, {});
    for (int round = 0; round < 20; ++round) {
      churn.run(150);
      churn.check();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(churn.unscheduled(), 200U);
    EXPECT_GT(churn.shadow_hits(), 200U);
    churn.finish();
    churn.check();
  }
}

TEST_P(RuleChurnTest, ShadowRulesChangeNoOrderAndNoTime) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RuleChurn with(GetParam(), seed, {.with_shadow = true, .with_retiring = false});
    RuleChurn without(GetParam(), seed, {.with_shadow = false, .with_retiring = false});
    with.run(3000);
    without.run(3000);
    EXPECT_GT(with.shadow_hits(), 200U);
    EXPECT_EQ(without.shadow_hits(), 0U);
    ASSERT_EQ(with.trace().size(), without.trace().size());
    const auto [one, other] = std::ranges::mismatch(with.trace(), without.trace());
    ASSERT_TRUE(one == with.trace().end()) << one->first << " and " << other->first;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, RuleChurnTest,
                         ::testing::Values("sfq", "tbf", "adaptbf", "edf", "fifo"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace vpfs::stage
