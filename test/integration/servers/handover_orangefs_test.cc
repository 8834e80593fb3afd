// Proxies in front of OrangeFS's own servers hand over again and again, and its own programs notice
// nothing. VPFS_OPERATIONS is the number of hand-overs.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fuse/file_checker.h"
#include "test/fuse/mount_process.h"
#include "test/integration/servers/proxied_orangefs.h"
#include "test/support/load_run.h"

namespace vpfs::test {
namespace {

constexpr int kHandOvers = 30;
constexpr std::chrono::milliseconds kBetween = 100ms;
constexpr std::size_t kDisturbed = 30'000'003;
constexpr std::chrono::milliseconds kMiddle = 300ms;

class HandoverOrangefs : public ProxiedOrangefs {
 protected:
  // Hands over at one proxy after the other, as long as `load` runs.
  void hand_over_all_the_time(Process* load = nullptr) {
    const int times = checker_operations(kHandOvers);
    for (int i = 0; i < times; ++i) {
      if (load != nullptr && !load->running()) break;
      const auto next = static_cast<std::size_t>(i) % proxies_.size();
      olds_.push_back(proxies_[next]->hand_over());
      std::this_thread::sleep_for(kBetween);
    }
  }

  // Ends all of them first, so that nothing is left of what the last one had kept.
  void TearDown() override {
    std::vector<double> pauses;
    for (Process& old : olds_) {
      const auto exit = old.wait(60s);
      ASSERT_TRUE(exit) << old.errors();
      EXPECT_TRUE(exit->ok()) << "signal " << exit->signal << old.errors();
      EXPECT_THAT(old.errors(), ::testing::Not(::testing::HasSubstr("restart.drain")));
      pauses.push_back(pause_of(old));
    }
    ProxiedOrangefs::TearDown();
    if (pauses.empty()) return;
    std::ranges::sort(pauses);
    RecordProperty("hand_overs", std::to_string(pauses.size()));
    RecordProperty("pause_p50_ms", std::to_string(pauses[pauses.size() / 2]));
    RecordProperty("pause_worst_ms", std::to_string(pauses.back()));
  }

  // A program that does the words of a shell's script again and again, until the file `stop` is
  // there. Its output is "N rounds".
  Process rounds(const std::string& name, const std::string& words) {
    const std::string script =
        directory_.write(name, fmt::format("n=0\nwhile [ ! -e {} ]; do\n{}\nn=$((n + 1))\ndone\n"
                                           "echo $n rounds\n",
                                           path("stop"), words));
    return Process({"/bin/sh", "-e", script}, {{"PVFS2TAB_FILE", proxied_}});
  }
  void expect_rounds(Process& program) {
    std::ofstream(path("stop")).close();
    const auto exit = program.wait(120s);
    ASSERT_TRUE(exit) << "it hangs: " << program.output() << program.errors();
    EXPECT_TRUE(exit->ok()) << program.output() << program.errors();
    EXPECT_THAT(program.output(), ::testing::MatchesRegex("[1-9][0-9]* rounds\n"));
    EXPECT_EQ(program.errors(), "");
  }

  // Words for rounds(): a copy in and out again.
  [[nodiscard]] std::string copies(const std::string& file, const std::string& block) const {
    const std::string cp = tools_ + "/pvfs2-cp -b " + block;
    const std::string name = std::filesystem::path(file).filename();
    const std::string back = path("back-" + name);
    return fmt::format("{0} {1} /v/{2}-$n\n{0} /v/{2}-$n {3}\ncmp {1} {3}", cp, file, name, back);
  }

  // Copies a file in and out again. `disturb` is called in the middle of each.
  void expect_copies(const std::string& name, const std::function<void(Process& copy)>& disturb) {
    const std::string file = random_file(name, kDisturbed);
    const auto copy = [&](const std::string& from, const std::string& to) {
      Process program({tools_ + "/pvfs2-cp", "-b", "4194304", from, to},
                      {{"PVFS2TAB_FILE", proxied_}});
      std::this_thread::sleep_for(kMiddle);
      EXPECT_TRUE(program.running()) << "the file is too small";
      disturb(program);
      const auto exit = program.wait(120s);
      ASSERT_TRUE(exit) << "it hangs: " << program.output() << program.errors();
      EXPECT_TRUE(exit->ok()) << program.output() << program.errors();
    };
    copy(file, "/v/" + name);
    EXPECT_EQ(tool(direct_, "pvfs2-cp", {"/v/" + name, path("seen")}), "");
    expect_equal(path("seen"), file);
    copy("/v/" + name, path("back"));
    expect_equal(path("back"), file);
  }
  static void expect_equal(const std::string& one, const std::string& other) {
    Process cmp({"cmp", one, other});
    EXPECT_TRUE(cmp.wait().value_or(Process::Exit{}).ok()) << cmp.output() << cmp.errors();
  }
  void hand_over_each() {
    for (const auto& proxy : proxies_) olds_.push_back(proxy->hand_over());
  }

  static double pause_of(const Process& old) {
    const std::string text = old.output() + old.errors();
    const std::string word = "connections within ";
    const std::size_t at = text.find(word);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0 : std::stod(text.substr(at + word.size()));
  }

  std::vector<Process> olds_;
};

TEST_F(HandoverOrangefs, CopiesInAndOutNoticeNothing) {
  Process large = rounds("large", copies(random_file("l", 20'000'003), "10485760"));
  Process middle = rounds("middle", copies(random_file("m", 3'000'001), "65536"));
  Process small = rounds("small", copies(random_file("s", 5'000), "4000"));
  hand_over_all_the_time(&large);
  for (Process* each : {&large, &middle, &small}) expect_rounds(*each);
}

TEST_F(HandoverOrangefs, NorDoProgramsOnAFuseMount) {
  if (const std::string why = why_no_pvfs2fuse(); !why.empty()) GTEST_SKIP() << why;
  const FuseMount mount(*this);
  std::atomic<bool> stop = false;
  const auto check = [&](const std::string& name, std::uint64_t seed) {
    const std::string file = mount.path() + "/" + name;
    FileChecker checker(
        {.path = file, .elsewhere = file, .has_holes = false, .has_mappings = false}, seed);
    while (!stop) checker.run(20);
  };
  std::jthread one(check, "one", 1);
  std::jthread other(check, "other", 2);
  Process copies = rounds(
      "script", fmt::format("cp {0} {1}/c\ncmp {0} {1}/c\ndd if={0} of={1}/d bs=4k count=100 "
                            "status=none\ncmp -n 409600 {0} {1}/d\nmv {1}/c {1}/d\nrm {1}/d",
                            random_file("f", 3'000'001), mount.path()));
  hand_over_all_the_time(&copies);
  stop = true;
  one.join();
  other.join();
  expect_rounds(copies);
}

TEST_F(HandoverOrangefs, NorDoesAVerifiedLoad) {
  LoadRun load({.file_system = servers_->proxied_address(),
                .applications = "  - {name: large, processes: 2, outstanding: 4, size: 1 MiB, "
                                "read_percent: 50,\n     pattern: random, file_size: 16 MiB}\n"
                                "  - {name: huge, processes: 2, outstanding: 2, size: 4 MiB, "
                                "read_percent: 50,\n     pattern: random, file_size: 32 MiB}\n"
                                "  - {name: small, processes: 4, outstanding: 8, size: 16 KiB, "
                                "read_percent: 50,\n     pattern: random, file_size: 4 MiB}\n"
                                "  - {name: alone, processes: 2, outstanding: 1, size: 4 KiB, "
                                "read_percent: 100,\n     pattern: random, file_size: 1 MiB}\n",
                .duration = ""});
  ASSERT_TRUE(load.wait_until_begun()) << load.text();
  hand_over_all_the_time(&load.process());
  load.expect_good_stop();
}

TEST_F(HandoverOrangefs, NorDoesAMountOfVpfs) {
  if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  MountProcess::Settings settings;
  settings.address = servers_->proxied_address();
  const MountProcess mount(settings);
  std::atomic<bool> stop = false;
  const auto check = [&](const std::string& name, std::uint64_t seed) {
    const std::string file = mount.path() / name;
    FileChecker checker({.path = file, .elsewhere = file, .has_holes = false}, seed);
    while (!stop) checker.run(20);
  };
  std::jthread one(check, "one", 1);
  std::jthread other(check, "other", 2);
  hand_over_all_the_time();
  stop = true;
}

// Copies take a second or two.
class SlowHandoverOrangefs : public HandoverOrangefs {
 private:
  [[nodiscard]] ProxySettings settings(std::uint16_t server) const override {
    ProxySettings slow = HandoverOrangefs::settings(server);
    slow.virtual_pfs = "default: {weight: 1, rate: 10 MiB/s}";
    return slow;
  }
};

TEST_F(SlowHandoverOrangefs, ACopyThatIsStoppedMeanwhileNoticesNothing) {
  for (int round = 0; round < 3; ++round) {
    expect_copies(fmt::format("f{}", round), [this](Process& copy) {
      copy.signal(SIGSTOP);
      hand_over_each();
      std::this_thread::sleep_for(300ms);
      hand_over_each();
      copy.signal(SIGCONT);
    });
  }
}

// Its connections in the middle of a message end, and pvfs2-cp repeats its I/O.
TEST_F(SlowHandoverOrangefs, ACopyOutlivesTheKillOfTheOldProcess) {
  expect_copies("f", [this](Process& /*copy*/) {
    for (const auto& proxy : proxies_) {
      Process old = proxy->hand_over();
      (void)old.kill();
    }
  });
}

TEST_F(SlowHandoverOrangefs, ACopyOutlivesTheKillOfTheNewProcess) {
  expect_copies("f", [this](Process& /*copy*/) {
    for (const auto& proxy : proxies_) {
      Process old = proxy->hand_over();
      proxy->kill();
      EXPECT_TRUE(old.wait(30s).value_or(Process::Exit{}).ok()) << old.errors();
      proxy->start();
    }
  });
}

// The bytes of that copy are not compared: without any proxy, a pvfs2-cp whose server is killed may
// copy wrong bytes, and exit with 0.
TEST_F(SlowHandoverOrangefs, ACopyEndsAfterTheKillOfADataServerAndTheNextIsGood) {
  Process copy({tools_ + "/pvfs2-cp", "-b", "4194304", random_file("f", kDisturbed), "/v/f"},
               {{"PVFS2TAB_FILE", proxied_}});
  std::this_thread::sleep_for(kMiddle);
  servers_->kill(1);
  hand_over_each();
  servers_->start(1);
  hand_over_each();
  EXPECT_TRUE(copy.wait(120s)) << "it hangs: " << copy.output() << copy.errors();
  expect_copies("g", [this](Process& /*copy*/) { hand_over_each(); });
}

}  // namespace
}  // namespace vpfs::test
