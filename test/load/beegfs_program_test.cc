// vpfs-load as a program, on a BeeGFS storage server without BeeGFS.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/beegfs/storage.h"
#include "test/support/process.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using beegfs::MessageType;
using test::BeegfsStorage;
using test::StorageFault;
using test::StorageRecord;

class BeegfsProgram : public testing::Test {
 protected:
  test::Process run(std::uint16_t port, const std::string& applications,
                    const std::string& more = "") {
    const std::string config = fmt::format(
        "file_system: beegfs://127.0.0.1:{}/101\nduration: 500 ms\nwarm_up: 100 ms\n{}\n"
        "applications: [{}]\n",
        port, more, applications);
    return test::Process({VPFS_BIN_DIR "/vpfs-load", "--config",
                          scratch_.write("load.yaml", config), "--json", json_file(), "--no-live"});
  }
  [[nodiscard]] std::string json_file() const { return (scratch_.path() / "out.json").string(); }
  // The results of a run that must be good.
  [[nodiscard]] Json good(test::Process load) {
    const auto exit = load.wait(60s);
    EXPECT_TRUE(exit && exit->ok()) << load.output() << load.errors();
    const std::string text = test::read_text(json_file());
    return text.empty() ? Json() : Json::parse(text);
  }
  // Whose reads and writes it carried.
  [[nodiscard]] static std::set<std::uint32_t> users_on(const test::SeenConnection& connection) {
    std::set<std::uint32_t> users;
    for (const test::SeenRequest& each : connection.requests) {
      if (!each.file_handle.empty()) users.insert(each.header.user);
    }
    return users;
  }

  test::TemporaryDirectory scratch_;
};

constexpr const char* kMixed =
    "{name: large, uid: 1001, processes: 2, outstanding: 4, size: 300 KiB, read_percent: 50,"
    " file_size: 6 MiB},"
    "{name: small, uid: 1002, outstanding: 20, size: 4 KiB, read_percent: 50, pattern: random,"
    " file_size: 1 MiB}";

TEST_F(BeegfsProgram, VerifiesEveryBlock) {
  BeegfsStorage storage;
  const Json json = good(run(storage.port(), kMixed, "verify: true\nthreads: 2"));
  ASSERT_EQ(json["applications"].size(), 2U);
  for (const Json& each : json["applications"]) {
    EXPECT_EQ(each["errors"], 0);
    EXPECT_EQ(each["verify_failures"], 0);
    EXPECT_GT(each["verified_blocks"], 0);
    EXPECT_GT(each["requests"], 0);
  }
  // Each of the three processes is a node, with at most twelve connections for its user.
  const StorageRecord record = storage.record();
  EXPECT_LE(record.connections.size(), 4U + 4U + 12U);
  EXPECT_LE(record.peak_outstanding, 4U + 4U + 12U);
  for (const test::SeenConnection& each : record.connections) {
    EXPECT_EQ(users_on(each).size(), 1U);
  }
}

TEST_F(BeegfsProgram, VerifiesThroughMistakesOfTheServerWithoutAnError) {
  BeegfsStorage storage;
  using Kind = StorageFault::Kind;
  const MessageType read = MessageType::read_local_file;
  const MessageType write = MessageType::write_local_file;
  storage.inject({.kind = Kind::cut_data, .type = write, .bytes = 100000});
  storage.inject({.kind = Kind::too_much, .type = write, .bytes = 1});
  storage.inject({.kind = Kind::cut_answer, .type = read, .bytes = 100000});
  storage.inject({.kind = Kind::half_word, .type = read, .bytes = 5, .delay = 20ms});
  storage.inject({.kind = Kind::too_much, .type = read, .bytes = 9});
  const std::string one =
      "{name: a, outstanding: 4, connections: 4, size: 256 KiB, read_percent: 50, file_size: 8 "
      "MiB}";
  const Json json = good(run(storage.port(), one, "verify: true"));
  EXPECT_EQ(json["applications"][0]["errors"], 0);
  EXPECT_EQ(json["applications"][0]["verify_failures"], 0);
}

TEST_F(BeegfsProgram, ApplicationsOfANodeShareItsConnections) {
  BeegfsStorage storage({.device = dataserver::DeviceSettings{
                             .bandwidth = {200 * kMiB}, .per_request = 100us, .parallelism = 1}});
  // The greedy one holds the connections, so the other waits in line behind its requests.
  const Json json = good(run(storage.port(),
                             "{name: greedy, uid: 1, node: n, connections: 4, outstanding: 31,"
                             " size: 64 KiB, file_size: 4 MiB},"
                             "{name: modest, uid: 2, node: n, connections: 4, outstanding: 1,"
                             " size: 64 KiB, file_size: 4 MiB}",
                             "threads: 2"));
  const StorageRecord record = storage.record();
  EXPECT_EQ(record.connections.size(), 4U);
  EXPECT_EQ(record.peak_outstanding, 4U);
  const bool shared = std::ranges::any_of(record.connections, [](const auto& each) {
    return users_on(each) == std::set<std::uint32_t>{1, 2};
  });
  EXPECT_TRUE(shared);
  const double greedy = json["applications"][0]["requests"];
  const double modest = json["applications"][1]["requests"];
  EXPECT_GT(modest, 0);
  EXPECT_GT(greedy / modest, 10);
}

TEST_F(BeegfsProgram, NothingToMountIsOneClearLine) {
  const test::ReservedPort nobody;
  test::Process load = run(nobody.number(), "{name: a}");
  const auto exit = load.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_NE(load.errors().find(fmt::format("cannot mount beegfs://{}/101", nobody.address())),
            std::string::npos)
      << load.errors();
}

TEST_F(BeegfsProgram, RunsOnTheServerOfTheBenchmarks) {
  test::Process server({VPFS_BIN_DIR "/vpfs-bench-beegfs-storage", "--targets", "7,101",
                        "--bandwidth", "400 MiB/s", "--per-request", "20 us", "--parallelism",
                        "4"});
  ASSERT_TRUE(server.wait_for_line("ready on 127.0.0.1:")) << server.errors();
  const std::string line = server.output();
  const int port = std::stoi(line.substr(line.rfind(':') + 1));
  (void)good(run(static_cast<std::uint16_t>(port), kMixed, "verify: true"));
  EXPECT_TRUE(server.stop().ok());
  EXPECT_EQ(server.errors(), "");
}

TEST_F(BeegfsProgram, TheServerOfTheBenchmarksRefusesNonsense) {
  for (const char* option : {"--bandwidth", "--capacity", "--targets", "--speed"}) {
    test::Process server({VPFS_BIN_DIR "/vpfs-bench-beegfs-storage", option, "fast"});
    const auto exit = server.wait();
    ASSERT_TRUE(exit) << option;
    EXPECT_EQ(exit->code, 2) << option;
    EXPECT_NE(server.errors(), "") << option;
  }
}

}  // namespace
}  // namespace vpfs::load
