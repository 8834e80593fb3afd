// vpfs-load as a program, on a BeeGFS storage server without BeeGFS.
#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using beegfs::MessageType;
using test::BeegfsStorage;
using test::StorageFault;
using test::StorageRecord;

using test::LoadRun;
using test::LoadRunSettings;

LoadRunSettings short_load(std::uint16_t port, const std::string& applications,
                           const std::string& more = "") {
  return {.file_system = fmt::format("beegfs://127.0.0.1:{}/101", port),
          .applications = applications,
          .duration = "2 s",
          .warm_up = "100 ms",
          .more = more};
}

// The users whose reads and writes a connection carried.
std::set<std::uint32_t> users_on(const test::SeenConnection& connection) {
  std::set<std::uint32_t> users;
  for (const test::SeenRequest& each : connection.requests) {
    if (!each.file_handle.empty()) users.insert(each.header.user);
  }
  return users;
}

constexpr const char* kMixed =
    "  - {name: large, uid: 1001, processes: 2, outstanding: 4, size: 300 KiB, read_percent: 50,"
    " file_size: 6 MiB}\n"
    "  - {name: small, uid: 1002, outstanding: 20, size: 4 KiB, read_percent: 50, pattern: random,"
    " file_size: 1 MiB}\n";

TEST(BeegfsProgram, VerifiesEveryBlock) {
  BeegfsStorage storage;
  LoadRun run(short_load(storage.port(), kMixed, "threads: 2\n"));
  run.expect_good_end();
  EXPECT_EQ(run.results()["applications"].size(), 2U);
  // Each of the three processes is a node, with at most twelve connections for its user.
  const StorageRecord record = storage.record();
  EXPECT_LE(record.connections.size(), 4U + 4U + 12U);
  EXPECT_LE(record.peak_outstanding, 4U + 4U + 12U);
  for (const test::SeenConnection& each : record.connections) {
    EXPECT_EQ(users_on(each).size(), 1U);
  }
}

// Requests of three quarters of a MiB begin and end within chunks, and are at several targets.
TEST(BeegfsProgram, StripesFilesOverTheTargetsAndVerifiesEveryBlock) {
  const std::vector<std::uint16_t> targets = {101, 7, 102};
  BeegfsStorage storage({.targets = targets});
  LoadRunSettings settings =
      short_load(storage.port(),
                 "  - {name: a, processes: 3, outstanding: 2, connections: 4, size: 768 KiB,"
                 " read_percent: 50, file_size: 9 MiB}\n",
                 "keep_files: true\n");
  settings.file_system = fmt::format("beegfs://127.0.0.1:{}/101,7,102", storage.port());
  LoadRun run(settings);
  run.expect_good_end();
  // 18 chunks of a file of 9 MiB: six at each target, and no byte beyond.
  std::set<std::string> entries;
  for (const test::SeenConnection& each : storage.record().connections) {
    for (const test::SeenRequest& seen : each.requests) {
      if (seen.file_handle.empty()) continue;
      EXPECT_LE(static_cast<std::uint64_t>(seen.count), 512 * kKiB);
      EXPECT_LE(static_cast<std::uint64_t>(seen.offset + seen.count), 3 * kMiB);
      entries.insert(seen.file_handle.substr(seen.file_handle.find('#') + 1));
    }
  }
  EXPECT_EQ(entries.size(), 3U);
  for (const std::string& entry : entries) {
    for (const std::uint16_t target : targets) {
      EXPECT_EQ(storage.content(target, entry).size(), 3 * kMiB) << target << ", " << entry;
    }
  }
}

TEST(BeegfsProgram, VerifiesThroughMistakesOfTheServerWithoutAnError) {
  BeegfsStorage storage;
  using Kind = StorageFault::Kind;
  const MessageType read = MessageType::read_local_file;
  const MessageType write = MessageType::write_local_file;
  storage.inject({.kind = Kind::cut_data, .type = write, .bytes = 100000});
  storage.inject({.kind = Kind::too_much, .type = write, .bytes = 1});
  storage.inject({.kind = Kind::cut_answer, .type = read, .bytes = 100000});
  storage.inject({.kind = Kind::half_word, .type = read, .bytes = 5, .delay = 20ms});
  storage.inject({.kind = Kind::too_much, .type = read, .bytes = 9});
  LoadRun run(short_load(storage.port(),
                         "  - {name: a, outstanding: 4, connections: 4, size: 256 KiB,"
                         " read_percent: 50, file_size: 8 MiB}\n"));
  run.expect_good_end();
}

TEST(BeegfsProgram, ApplicationsOfANodeShareItsConnections) {
  BeegfsStorage storage({.device = DeviceSettings{
                             .bandwidth = {200 * kMiB}, .per_request = 100us, .parallelism = 1}});
  // The greedy application holds the connections, so the other one queues behind its requests.
  LoadRunSettings settings =
      short_load(storage.port(),
                 "  - {name: greedy, uid: 1, node: n, connections: 4, outstanding: 31,"
                 " size: 64 KiB, file_size: 4 MiB}\n"
                 "  - {name: modest, uid: 2, node: n, connections: 4, outstanding: 1,"
                 " size: 64 KiB, file_size: 4 MiB}\n",
                 "threads: 2\n");
  settings.verify = false;
  LoadRun run(settings);
  run.expect_good_end();
  const StorageRecord record = storage.record();
  EXPECT_EQ(record.connections.size(), 4U);
  EXPECT_EQ(record.peak_outstanding, 4U);
  const bool shared = std::ranges::any_of(record.connections, [](const auto& each) {
    return users_on(each) == std::set<std::uint32_t>{1, 2};
  });
  EXPECT_TRUE(shared);
  EXPECT_GT(run.requests_per_second("greedy") / run.requests_per_second("modest"), 10);
}

TEST(BeegfsProgram, NothingToMountIsOneClearLine) {
  const test::ReservedPort nobody;
  LoadRun run(short_load(nobody.number(), "  - {name: a}\n"));
  const auto exit = run.process().wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(run.text().find(fmt::format("cannot mount beegfs://{}/101", nobody.address())),
            std::string::npos)
      << run.text();
}

TEST(BeegfsProgram, RunsOnTheServerOfTheBenchmarks) {
  test::Process server({test::program("vpfs-bench-beegfs-storage"), "--targets", "7,101",
                        "--bandwidth", "400 MiB/s", "--per-request", "20 us", "--parallelism",
                        "4"});
  ASSERT_TRUE(server.wait_for_line("ready on 127.0.0.1:")) << server.errors();
  const std::string line = server.output();
  const int port = std::stoi(line.substr(line.rfind(':') + 1));
  LoadRun run(short_load(static_cast<std::uint16_t>(port), kMixed));
  run.expect_good_end();
  EXPECT_TRUE(server.stop().ok());
  EXPECT_EQ(server.errors(), "");
}

TEST(BeegfsProgram, TheServerOfTheBenchmarksRefusesNonsense) {
  for (const char* option : {"--bandwidth", "--capacity", "--targets", "--speed"}) {
    test::Process server({test::program("vpfs-bench-beegfs-storage"), option, "fast"});
    const auto exit = server.wait();
    ASSERT_TRUE(exit) << option;
    EXPECT_EQ(exit->code, 2) << option;
    EXPECT_NE(server.errors(), "") << option;
  }
}

TEST(BeegfsProgram, EndedByASignalItVerifiesAndReports) {
  BeegfsStorage storage;
  LoadRunSettings settings =
      short_load(storage.port(),
                 "  - {name: busy, size: 64 KiB, read_percent: 50, file_size: 1 MiB}\n"
                 "  - {name: later, size: 64 KiB, file_size: 1 MiB, start: 30 min}\n");
  settings.warm_up = "0 s";
  settings.duration = "1 h";
  LoadRun run(settings);
  ASSERT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.writes > 40; }));
  EXPECT_TRUE(run.stop().ok()) << run.text();
  EXPECT_EQ(run.results()["ended_early"], true);
  const double seconds = run.results()["duration_s"];
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 60);
  const Json& busy = run.application("busy");
  EXPECT_GT(busy["verified_blocks"], 0);
  EXPECT_EQ(busy["verify_failures"], 0);
  EXPECT_NEAR(busy["ops_per_s"].get<double>() * seconds, busy["requests"].get<double>(), 0.5);
  EXPECT_EQ(run.application("later")["requests"], 0);
}

TEST(BeegfsProgram, ASignalWhileItVerifiesLosesNoResults) {
  BeegfsStorage storage;
  LoadRunSettings settings =
      short_load(storage.port(), "  - {name: a, size: 64 KiB, file_size: 1 MiB}\n");
  settings.warm_up = "0 s";
  settings.duration = "300 ms";
  LoadRun run(settings);
  ASSERT_TRUE(run.wait_until_begun()) << run.text();
  storage.inject({.kind = StorageFault::Kind::delay,
                  .type = MessageType::read_local_file,
                  .delay = 2s,
                  .times = 1});
  // It writes while it runs, and reads when it verifies.
  const auto is_read = [](const test::SeenRequest& each) {
    return each.header.type == MessageType::read_local_file;
  };
  ASSERT_TRUE(storage.wait_until([&](const StorageRecord& now) {
    return std::ranges::any_of(now.connections, [&](const test::SeenConnection& each) {
      return std::ranges::any_of(each.requests, is_read);
    });
  }));
  run.process().signal(SIGINT);
  EXPECT_TRUE(run.finish().ok()) << run.text();
  EXPECT_EQ(run.results()["ended_early"], false) << "all of its time was measured";
  EXPECT_GT(run.application("a")["verified_blocks"], 0);
}

TEST(BeegfsProgram, ASecondSignalEndsItThoughTheServerIsSilent) {
  BeegfsStorage storage;
  LoadRunSettings settings =
      short_load(storage.port(), "  - {name: a, size: 64 KiB, file_size: 1 MiB}\n");
  settings.duration = "1 h";
  LoadRun run(settings);
  ASSERT_TRUE(run.wait_until_begun()) << run.text();
  storage.inject({.kind = StorageFault::Kind::silence,
                  .type = MessageType::write_local_file,
                  .times = 1'000'000});
  ASSERT_TRUE(storage.wait_until([](const StorageRecord& now) { return now.outstanding > 0; }));
  run.process().signal(SIGINT);
  EXPECT_FALSE(run.process().wait(500ms)) << "a request is under way";
  run.process().signal(SIGINT);
  const auto exit = run.process().wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGINT);
}

}  // namespace
}  // namespace vpfs::load
