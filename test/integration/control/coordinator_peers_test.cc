// What stages that hang, and peers that are not stages, cost a coordinator and its other stages. By
// the wall clock.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/wire/framing.h"
#include "net/socket_options.h"
#include "test/integration/control/coordinator_site.h"
#include "test/support/clock/by_clock.h"
#include "test/support/clock/stall_watch.h"
#include "test/support/comes_true.h"
#include "test/support/control/fake_stage.h"
#include "test/support/control/raw_peer.h"

namespace vpfs::test {
namespace {

using control::Envelope;
using Clock = std::chrono::steady_clock;
using Cycle = CoordinatorProcess::Cycle;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

TEST(CoordinatorPeers, AProxyThatHangsHoldsUpNoOtherAndComesBack) {
  CoordinatorSite site(3);
  CoordinatorProcess coordinator =
      site.coordinator("site", "period: 20 ms\ndeadline: 15 ms\nlease: 400 ms\n");
  coordinator.start();
  ASSERT_TRUE(site.all_are_led(1));
  const StallWatch stalls;
  Process& hung = site.proxy(1).process();
  hung.signal(SIGSTOP);
  EXPECT_TRUE(coordinator.logs("stage ds1: it was silent for too long"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(site.is_led(0, 1) && site.is_led(2, 1)) << "others lose their leases";
    std::this_thread::sleep_for(20ms);
  }
  hung.signal(SIGCONT);
  EXPECT_TRUE(comes_true([&] { return site.is_led(1, 1); }));
  const auto most = 15 + static_cast<double>(stalls.longest().count());
  coordinator.stop();
  const std::vector<Cycle> cycles = coordinator.cycles();
  ASSERT_GT(cycles.size(), 20U);
  std::size_t late = 0;
  double longest = 0;
  for (const Cycle& each : cycles) {
    if (each.stages == 0 || each.number <= 3) continue;
    late += each.late;
    longest = std::max(longest, each.milliseconds);
  }
  // It misses ten cycles, and is silent from then on.
  EXPECT_GE(late, 5U) << kByClock;
  EXPECT_LE(late, 15U + static_cast<std::size_t>(stalls.longest() / 5ms)) << kByClock;
  EXPECT_LE(longest, most + 5) << "a cycle took longer than the deadline" << kByClock;
  std::cout << "late " << late << ", longest cycle " << longest
            << " ms, longest stall of the machine " << stalls.longest().count() << " ms\n";
}

// What this machine takes to parse a message, in milliseconds. The build is the coordinator's.
double time_to_parse(const Envelope& message) {
  const std::string frame = frame_of(message);
  const auto bytes = std::as_bytes(std::span(frame)).subspan(control::kLengthSize);
  std::vector<double> times;
  Envelope parsed;
  for (int i = 0; i < 51; ++i) {
    parsed.Clear();
    const auto begin = Clock::now();
    EXPECT_TRUE(control::decode(bytes, parsed));
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return median(std::move(times));
}

// Forty honest stages, and peers that are none.
class CoordinatorAttacks : public ::testing::Test {
 protected:
  static constexpr std::size_t kStages = 40;
  static constexpr double kDeadline = 5;  // milliseconds
  static constexpr int kParts = 4;        // of an attack, with quiet parts between them
  static constexpr int kAttempts = 2;     // since other programs take processors too
  // What a machine that is not busy keeps: of quiet cycles, and of threads that are due.
  static constexpr double kQuiet = 2;  // milliseconds
  static constexpr std::chrono::milliseconds kStall{4};
  static constexpr std::size_t kLeastCycles = 8;  // to judge an attempt
  // What an attack may add to a cycle, in milliseconds, if it sends no long reports.
  static constexpr double kMore = 0.6;
  // The coordinator looks at each flow of a report as well, and tells the first lie.
  static constexpr double kToParseAndCheck = 5;

  CoordinatorAttacks()
      : coordinator_(folder_.path(), "site",
                     // The honest ones share a thread, which a busy machine may stop for a while.
                     fmt::format("period: 10 ms\ndeadline: {} ms\nsilent_cycles: 100\n"
                                 "stages: {{listen: {{socket: {}}}}}\n",
                                 kDeadline, socket())) {
    coordinator_.start();
    for (std::size_t i = 0; i < kStages; ++i) {
      stages_.push_back(FakeStage::dial(socket()));
      EXPECT_TRUE(stages_.back().greet(stage_hello(fmt::format("honest {}", i)))->has_hello());
    }
    honest_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (FakeStage& each : stages_) {
          const auto cycle = each.answer_cycle();
          if (!cycle) {
            ++lost_;
            return;
          }
          cycle_ = cycle->sequence();
        }
      }
    });
  }
  [[nodiscard]] std::string socket() const { return folder_.path() / "stages.sock"; }

  // Runs `once` again and again, with quiet times between. A stage of it that does not answer makes
  // cycles as long as the deadline, until it is silent.
  // `reading` is what the machine needs to read what it sends.
  void attack(const std::string& name, const std::function<void()>& once,
              std::chrono::milliseconds pause = 2ms, bool leaves_cycles_open = false,
              double reading = 0) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Attempt& made = attempts_.emplace_back();
      made.name = name;
      made.leaves_cycles_open = leaves_cycles_open;
      made.reading = reading;
      const StallWatch stalls;
      for (int part = 0; part < kParts; ++part) {
        if (rest) rest();
        made.quiet.push_back({.first = cycle_ + 1});
        std::this_thread::sleep_for(60ms);
        made.quiet.back().last = cycle_;
        made.attacks.push_back({.first = cycle_ + 1});
        const auto end = Clock::now() + 60ms;
        while (Clock::now() < end) {
          once();
          ++made.times;
          std::this_thread::sleep_for(pause);
        }
        made.attacks.back().last = cycle_;
      }
      made.stall = stalls.longest();
    }
  }
  // Looks at what the cycles took.
  void judge() {
    honest_.request_stop();
    honest_.join();
    EXPECT_EQ(lost_, 0) << "an honest stage lost its connection\n" << coordinator_.errors();
    coordinator_.stop();
    std::map<std::uint64_t, double> took;
    for (const Cycle& each : coordinator_.cycles()) took[each.number] = each.milliseconds;
    const auto cycles_of = [&](const std::vector<Part>& parts) {
      std::vector<double> values;
      for (const Part& part : parts) {
        for (auto each = took.lower_bound(part.first);
             each != took.end() && each->first <= part.last; ++each) {
          values.push_back(each->second);
        }
      }
      return values;
    };
    struct Verdict {
      bool is_good = false;
      bool is_bad = false;  // though this machine was not busy
    };
    std::map<std::string, Verdict> verdicts;
    for (const Attempt& each : attempts_) {
      const std::vector<double> before = cycles_of(each.quiet);
      const std::vector<double> attacked = cycles_of(each.attacks);
      Verdict& verdict = verdicts[each.name];
      if (std::min(before.size(), attacked.size()) < kLeastCycles) {
        verdict.is_bad |= each.stall < kStall;  // the honest stages get no cycles
        continue;
      }
      const double quiet = median(before);
      const double during = median(attacked);
      std::cout << fmt::format("{:36} {:6} times: p50 {:.2f} ms, quiet {:.2f} ms, stall {} ms\n",
                               each.name, each.times, during, quiet, each.stall.count());
      const double most = each.leaves_cycles_open ? std::max(quiet, kDeadline) : quiet;
      const double allowed = std::max(1.5 * most, most + kMore + each.reading);
      verdict.is_good |= during <= allowed;
      verdict.is_bad |= during > allowed && quiet < kQuiet && each.stall < kStall;
    }
    bool is_busy = false;
    for (const auto& [name, verdict] : verdicts) {
      EXPECT_TRUE(verdict.is_good || !verdict.is_bad) << name << kByClock;
      is_busy |= !verdict.is_good && !verdict.is_bad;
    }
    if (is_busy) GTEST_SKIP() << "this machine is too busy to tell what each of them costs";
  }

  struct Part {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  struct Attempt {
    std::string name;
    bool leaves_cycles_open = false;
    double reading = 0;  // milliseconds
    std::uint64_t times = 0;
    std::chrono::milliseconds stall = {};
    std::vector<Part> quiet;
    std::vector<Part> attacks;
  };
  TemporaryDirectory folder_;
  CoordinatorProcess coordinator_;
  std::vector<FakeStage> stages_;
  std::atomic<std::uint64_t> cycle_ = 0;  // the last one that honest stages answered
  std::atomic<int> lost_ = 0;
  std::function<void()> rest;  // comes before quiet times
  std::vector<Attempt> attempts_;
  std::jthread honest_;
};

TEST_F(CoordinatorAttacks, PeersThatAreNotStagesAreRefusedAndCostOthersNothing) {
  const auto say = [this](const std::string& bytes) {
    FakeStage peer = FakeStage::dial(socket());
    (void)peer.send(bytes, 20ms);
    EXPECT_TRUE(peer.closed_within());
  };
  attack("garbage", [&] { say(std::string(3000, '\xee')); });
  attack("HTTP", [&] { say("GET / HTTP/1.1\r\nHost: x\r\n\r\n"); });
  attack("a TLS Hello", [&] {
    say(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(500, 'x'));
  });
  attack("a frame of 4 GiB", [&] { say(std::string(4, '\xff')); });
  attack("a Hello of the wrong version", [&] {
    control::Hello hello = stage_hello("x");
    hello.set_version(77);
    hello.set_least(77);
    FakeStage peer = FakeStage::dial(socket());
    const auto answer = peer.greet(hello);
    ASSERT_TRUE(answer && answer->has_error());
    EXPECT_EQ(answer->error().place(), "version");
  });
  attack("a name that is taken", [&] {
    FakeStage peer = FakeStage::dial(socket());
    EXPECT_TRUE(peer.greet(stage_hello("honest 0"))->has_error());
  });
  attack("an end in the middle of Hello", [&] {
    Envelope envelope;
    *envelope.mutable_hello() = stage_hello("x");
    FakeStage peer = FakeStage::dial(socket());
    EXPECT_TRUE(peer.send(frame_of(envelope).substr(0, 9)));
  });
  attack(
      "a Hello flood", [&] { EXPECT_TRUE(FakeStage::dial(socket()).greet(stage_hello(""))); }, 1ms);
  judge();
}

TEST_F(CoordinatorAttacks, StagesThatLieCostOthersNothing) {
  FakeStage liar = FakeStage::dial(socket());
  std::uint64_t incarnation = 0;
  Envelope answer;
  // Joins as a stage, and again when it was ended.
  const auto join = [&] {
    liar = FakeStage::dial(socket());
    control::Hello hello = stage_hello("liar");
    hello.set_incarnation(++incarnation);
    if (!liar.greet(hello)) return;
    Envelope flows;
    for (std::uint32_t i = 0; i < 20; ++i) {
      control::Flow& flow = *flows.mutable_flows()->add_flows();
      flow.set_id(i);
      flow.set_name(fmt::format("job {}", i));
      flow.set_weight(1);
    }
    (void)liar.send(flows);
  };
  const auto report = [&](const std::function<void(control::Report&)>& lie) {
    const auto asked = liar.receive(100ms);
    if (!asked) return join();
    if (!asked->has_cycle()) return;
    answer.Clear();
    answer.set_id(asked->id());
    answer.set_answer(true);
    answer.mutable_report()->set_term(asked->cycle().term());
    answer.mutable_report()->set_sequence(asked->cycle().sequence());
    answer.mutable_report()->set_applied(true);
    lie(*answer.mutable_report());
    (void)liar.send(answer);
  };
  // Without the liar cycles are those of the honest stages alone.
  rest = [&] { liar = FakeStage::dial("/none"); };
  attack(
      "an older term",
      [&] { report([](control::Report& each) { each.set_term(each.term() - 1); }); }, 2ms, true);
  attack("the same report again", [&] {
    if (answer.has_report()) (void)liar.send(answer);
    report([](control::Report&) {});
  });
  std::uint64_t counter = std::uint64_t{1} << 50;
  attack("counters that go back", [&] {
    report([&](control::Report& each) {
      for (std::uint32_t i = 0; i < 20; ++i) {
        each.add_flows()->set_flow(i);
        each.mutable_flows(static_cast<int>(i))->set_done_cost(counter);
      }
      counter -= 1'000'000;
    });
  });
  attack("huge counters", [&] {
    report([&](control::Report& each) {
      for (std::uint32_t i = 0; i < 20; ++i) {
        control::FlowReport& flow = *each.add_flows();
        flow.set_flow(i);
        flow.set_done_cost(~std::uint64_t{0} - i);
        flow.set_arrived_bytes(~std::uint64_t{0});
        flow.set_limited_us(~std::uint64_t{0});
      }
    });
  });
  const auto add_unknown = [](control::Report& each) {
    for (std::uint32_t i = 0; i < 1000; ++i) each.add_flows()->set_flow(100 + i * 7919);
  };
  Envelope unknown;
  add_unknown(*unknown.mutable_report());
  const double reading = kToParseAndCheck * time_to_parse(unknown);
  attack(
      "flows that were not announced", [&] { report(add_unknown); }, 2ms, false, reading);
  attack(
      "no report at all",
      [&] {
        if (liar.closed_within(5ms)) join();
      },
      2ms, true);
  attack(
      "fifty reports that were not asked for",
      [&] {
        Envelope unasked;
        unasked.mutable_report()->set_sequence(1);
        std::string frames;
        for (int k = 0; k < 50; ++k) frames += frame_of(unasked);
        if (!liar.send(frames, 10ms)) join();
      },
      1ms, true);
  attack(
      "a frame of 64 MiB, byte by byte",
      [&] {
        if (!liar.send("\x03", 10ms)) join();
      },
      2ms, true);
  judge();
}

// Ten thousand need more descriptors than two ends in one process may have.
TEST(CoordinatorPeers, ThousandsThatDialAtOnceAreAllAdmittedAndAnswered) {
  constexpr int kStages = 2000;
  const TemporaryDirectory folder;
  const std::string socket = folder.path() / "stages.sock";
  CoordinatorProcess coordinator(
      folder.path(), "site",
      fmt::format("period: 200 ms\ndeadline: 199 ms\nstages: {{listen: {{socket: {}}}}}\n",
                  socket));
  coordinator.start();
  (void)net::raise_open_file_limit();
  const auto begin = Clock::now();
  std::vector<FakeStage> stages;
  for (int i = 0; i < kStages; ++i) {
    stages.push_back(FakeStage::dial(socket));
    Envelope hello;
    hello.set_id(1);
    *hello.mutable_hello() = stage_hello(fmt::format("stage {}", i));
    ASSERT_TRUE(stages.back().send(hello)) << i;
  }
  for (FakeStage& each : stages) {
    const auto answer = each.receive();
    ASSERT_TRUE(answer && answer->has_hello());
  }
  const auto took = Clock::now() - begin;
  std::cout << kStages << " admitted in " << took / 1ms << " ms\n";
  EXPECT_LT(took, 5s) << kByClock;
  for (FakeStage& each : stages) ASSERT_TRUE(each.answer_cycle());
  coordinator.stop();
}

}  // namespace
}  // namespace vpfs::test
