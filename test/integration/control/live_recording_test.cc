// Recordings of real proxies, as vpfsctl writes them.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class LiveRecording : public ::testing::Test {
 protected:
  std::string dump(const std::string& name) {
    const std::string file = live_.directory().path() / name;
    live_.run({"record", "dump", file});
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  // A client may have its answer before its request has ended in the stage.
  void wait_for(int requests) {
    EXPECT_TRUE(comes_true([&] { return live_.data({"record", "show"})["written"] == requests; }));
  }
  // By their arrivals: those of different workers end in any order.
  std::vector<Json> requests() {
    std::istringstream lines(dump("x.json"));
    std::vector<Json> all;
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
    EXPECT_EQ(all.at(0)["requests"], all.size() - 1);
    all.erase(all.begin());
    std::ranges::sort(all, {},
                      [](const Json& each) { return each["arrival_ns"].get<std::int64_t>(); });
    return all;
  }

  LiveProxy live_;
};

TEST_F(LiveRecording, HasWhatArrivedAndFromWhere) {
  ProxiedLink one = live_.open();
  ProxiedLink other = live_.open();
  live_.serve(one, "before");
  ASSERT_TRUE(
      live_.proxy().wait_until([](const Json& status) { return status["outstanding"] == 0; }));
  live_.run({"record", "start", "--size", "1MiB"});
  for (int i = 0; i < 3; ++i) live_.serve(one, "a");
  live_.serve(other, "a");
  live_.serve(one, "b");
  wait_for(5);
  live_.run({"record", "stop"});
  live_.serve(one, "after");
  const std::vector<Json> all = requests();
  ASSERT_EQ(all.size(), 5U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["virtual_pfs"], i < 4 ? "job-a" : "job-b");
    EXPECT_EQ(all[i]["job"], i < 4 ? "a" : "b");
    EXPECT_EQ(all[i]["client"], "127.0.0.1");
    EXPECT_EQ(all[i]["end"], "done");
    EXPECT_GT(all[i]["file"].get<std::string>().size(), 1U);
    EXPECT_TRUE(all[i].contains("offset"));
  }
  EXPECT_EQ(all[0]["connection"], all[2]["connection"]);
  EXPECT_NE(all[0]["connection"], all[3]["connection"]);
  EXPECT_EQ(all[0]["connection"], all[4]["connection"]);
}

TEST_F(LiveRecording, AReloadOrAnotherOneLosesNothing) {
  ProxiedLink link = live_.open();
  live_.run({"record", "start", "--size", "1MiB"});
  live_.serve(link, "a");
  live_.run({"reload"});
  live_.serve(link, "a");
  wait_for(2);
  EXPECT_EQ(requests().size(), 2U);
  EXPECT_EQ(live_.ctl({"record", "start"}).code, 1);
  EXPECT_EQ(requests().size(), 2U);
  live_.run({"record", "stop"});
  live_.run({"record", "start", "--size", "1MiB"});
  live_.serve(link, "b");
  wait_for(1);
  const std::vector<Json> all = requests();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["job"], "b") << "the session's origin is of the new recording";
  live_.run({"record", "drop"});
  EXPECT_EQ(live_.data({"record", "show"})["number"], 0);
}

TEST_F(LiveRecording, HasOtherFormats) {
  ProxiedLink link = live_.open();
  live_.run({"record", "start", "--size", "1MiB"});
  live_.serve(link, "a");
  wait_for(1);
  EXPECT_THAT(dump("x.iolog"), StartsWith("fio version 3 iolog\n"));
  EXPECT_THAT(dump("x.perfetto-trace"), HasSubstr("requests that wait"));
  EXPECT_FALSE(std::filesystem::exists(live_.directory().path() / "x.iolog.unfinished"));
}

TEST_F(LiveRecording, MistakesAreOneClearError) {
  const auto error = [&](const std::vector<std::string>& words, int code) {
    const Outcome outcome = live_.ctl(words);
    EXPECT_EQ(outcome.code, code) << words.back();
    return outcome.errors;
  };
  EXPECT_THAT(error({"record", "dump", "x"}, 1), HasSubstr("there is no recording"));
  EXPECT_THAT(error({"record", "start", "--size", "much"}, 2), HasSubstr("--size: "));
  EXPECT_THAT(error({"record", "start", "--size", "7TiB"}, 1), HasSubstr("64 KiB to 1 GiB"));
  EXPECT_THAT(error({"record", "start", "--for", "soon"}, 2), HasSubstr("--for: "));
  EXPECT_THAT(error({"record", "start", "--for", "0s"}, 2), HasSubstr("--for: expected a time"));
  live_.run({"record", "start", "--size", "1MiB"});
  EXPECT_THAT(error({"record", "dump", "x", "--format", "xml"}, 2), HasSubstr("expected json"));
  EXPECT_THAT(error({"record", "dump", "/nonexistent/x"}, 1), HasSubstr("cannot be written"));
  EXPECT_THAT(error({"record", "dump", "x", "--proxy", "/nonexistent"}, 2),
              HasSubstr("expected one proxy, and these are 2"));
}

TEST_F(LiveRecording, IsReplayedWithAnotherConfiguration) {
  ProxiedLink link = live_.open();
  live_.run({"record", "start", "--size", "1MiB"});
  for (int i = 0; i < 10; ++i) live_.serve(link, "a");
  wait_for(10);
  live_.run({"record", "stop"});
  (void)dump("x.json");
  const std::string file = live_.directory().path() / "x.json";
  Process sim({program("vpfs-sim"), "--replay", file, "--config", live_.proxy().config()});
  const auto exit = sim.wait();
  ASSERT_TRUE(exit && exit->ok()) << sim.errors();
  EXPECT_THAT(sim.output(), HasSubstr("job-a"));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 10);
  Process cut({program("vpfs-sim"), "--replay", file, "--config", live_.proxy().config()});
  const auto refused = cut.wait();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, 2);
  EXPECT_THAT(cut.errors(), HasSubstr("x.json:11: expected a request"));
  Process half({program("vpfs-sim"), "--replay", file});
  EXPECT_EQ(half.wait()->code, 2);
  EXPECT_THAT(half.errors(), HasSubstr("--replay FILE needs --config FILE"));
}

}  // namespace
}  // namespace vpfs::test
