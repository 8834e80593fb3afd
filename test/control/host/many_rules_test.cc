// Sets of as many rules as there may be: the work grows with their number, not with its square.

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/control/host/administration_rig.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kFew = 1'000;
constexpr std::size_t kMany = 5'000;
// Five times the rules cost five times the time, and a little more for memory that is far away.
// A square would be 25.
constexpr double kMostRatio = 15;

class ManyRules : public AdministrationTest {
 protected:
  // Rules of jobs with a share of their own, and rules that send to it.
  static std::string file_of(std::size_t count, const std::string& weight = "2") {
    std::string text = "rules:\n";
    for (std::size_t i = 0; i < count; ++i) {
      text +=
          i % 4 == 3
              ? fmt::format("- {{name: r{0}, match: 'jobid=b{0}&uid={0}', vpfs: r{1}}}\n", i, i - 1)
              : fmt::format("- {{name: r{0}, match: 'jobid=a{0}', weight: {1}, rate: 5MiB/s}}\n", i,
                            weight);
    }
    return text;
  }
  static Rule apply_of(const std::string& text) {
    Rule rule;
    rule.set_action(Rule::APPLY);
    rule.set_file_name("rules.yaml");
    rule.set_file(text);
    return rule;
  }
  static double processor_seconds() {
    timespec used = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
  }
  // The processor time of what is asked for.
  template <typename Work>
  static double seconds(Work work) {
    const double before = processor_seconds();
    work();
    return processor_seconds() - before;
  }
  // The least of up to three each, since others use this machine.
  template <typename Measure>
  void expect_linear(const char* what, Measure measure) {
    double few = measure(kFew);
    double many = measure(kMany);
    for (int i = 0; i < 2 && many > kMostRatio * few; ++i) {
      few = std::min(few, measure(kFew));
      many = std::min(many, measure(kMany));
    }
    fmt::print("{}: {:.1f} ms for {} rules, {:.1f} ms for {}\n", what, few * 1000, kFew,
               many * 1000, kMany);
    EXPECT_LE(many, kMostRatio * few) << what;
  }
  void forget() {
    journal_ = {};
    start();
  }
};

TEST_F(ManyRules, AreAppliedInATimeThatGrowsWithTheirNumber) {
  expect_linear("applied to none", [this](std::size_t count) {
    forget();
    const Rule rule = apply_of(file_of(count));
    return seconds([&] { EXPECT_EQ(why_not(ask(rule)), ""); });
  });
}

TEST_F(ManyRules, AreChangedInATimeThatGrowsWithTheirNumber) {
  expect_linear("all changed", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count)))), "");
    const Rule rule = apply_of(file_of(count, "3"));
    return seconds([&] { EXPECT_EQ(why_not(ask(rule)), ""); });
  });
}

TEST_F(ManyRules, AreTheSameAgainInATimeThatGrowsWithTheirNumber) {
  expect_linear("applied again", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count)))), "");
    const Rule rule = apply_of(file_of(count));
    return seconds([&] { EXPECT_EQ(why_not(ask(rule)), ""); });
  });
}

TEST_F(ManyRules, AreListedInATimeThatGrowsWithTheirNumber) {
  expect_linear("listed", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count)))), "");
    return seconds([&] { EXPECT_GE(rules().size(), count); });
  });
}

TEST_F(ManyRules, AreReadFromTheJournalInATimeThatGrowsWithTheirNumber) {
  expect_linear("started", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count)))), "");
    return seconds([&] { start(); });
  });
}

TEST_F(ManyRules, TakeOneMoreInATimeThatGrowsWithTheirNumber) {
  expect_linear("one more", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count - 1)))), "");
    return seconds([&] { EXPECT_EQ(why_not(ask(start_of("one", "uid=1", {"weight=2"}))), ""); });
  });
}

// Requests wait while a stage takes a configuration on, and only then.
TEST_F(ManyRules, HoldRequestsUpForATimeThatGrowsWithTheirNumber) {
  expect_linear("taken on by a stage", [this](std::size_t count) {
    forget();
    EXPECT_EQ(why_not(ask(apply_of(file_of(count)))), "");
    const stage::Config config = live_->composed().config;
    StageOfTest stage(file_config());
    return seconds([&] { stage.get().reconfigure(config, stage.now()); });
  });
}

}  // namespace
}  // namespace vpfs::control
