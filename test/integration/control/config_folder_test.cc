// The files of proxy.d, at a running proxy.

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/control/live_proxy.h"
#include "test/support/comes_true.h"
#include "test/support/outcome.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigFolderProgram : public ::testing::Test {
 protected:
  // Where the files of the folder are.
  [[nodiscard]] std::filesystem::path folder() {
    std::filesystem::path main = live_.proxy().config();
    return main.replace_extension(".d");
  }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directory(folder());
    std::ofstream(folder() / name) << text;
  }
  [[nodiscard]] Outcome check() {
    Process process({program("vpfs-proxy"), "--config", live_.proxy().config(), "--check-config"});
    return outcome_of(process);
  }

  LiveProxy live_;
};

TEST_F(ConfigFolderProgram, AReloadReadsTheFiles) {
  write("20-b.yaml", "rules: [{name: second, match: 'jobid=x', virtual_pfs: physics}]\n");
  write("10-a.yaml",
        "virtual_pfs:\n  physics: {weight: 7}\nrules:\n  - {name: first, match: 'jobid=y', weight: "
        "3}\n");
  live_.run({"reload"});
  EXPECT_THAT(live_.rules(), ElementsAre("jobs", "first", "second", "default"));
  const Outcome text = live_.ctl({"config"});
  EXPECT_THAT(text.output, HasSubstr("--- # file: " + (folder() / "10-a.yaml").string() + "\n"));
  std::filesystem::remove(folder() / "20-b.yaml");
  live_.run({"reload"});
  EXPECT_THAT(live_.rules(), ElementsAre("jobs", "first", "default"));
}

TEST_F(ConfigFolderProgram, AMistakeThereChangesNothing) {
  write("10-a.yaml", "rules: [{name: jobs, match: 'jobid=y', weight: 3}]\n");
  const Outcome refused = live_.ctl({"reload"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.errors, HasSubstr((folder() / "10-a.yaml").string() +
                                        ":1: rules[1].name: another rule is named 'jobs' in " +
                                        live_.proxy().config() + ":"));
  EXPECT_THAT(live_.rules(), ElementsAre("jobs", "default"));
}

TEST_F(ConfigFolderProgram, TheCheckNamesTheFilesAndTheirMistakes) {
  write("10-a.yaml", "rules: [{name: first, match: {hint: {jobid: y}}, weight: 3}]\n");
  const Outcome good = check();
  EXPECT_EQ(good.code, 0) << good.errors;
  EXPECT_THAT(good.output, HasSubstr((folder() / "10-a.yaml").string() + ": ok\n"));
  EXPECT_THAT(good.errors,
              HasSubstr((folder() / "10-a.yaml").string() + ":1: rules[1]: 'first' " +
                        "never applies: rules[0] 'jobs' in " + live_.proxy().config()));
  write("20-b.yaml", "proxy: {workers: 3}\nrules:\n  - {name: b, macth: 'jobid=y'}\n");
  const Outcome bad = check();
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.errors, HasSubstr("20-b.yaml:1: proxy: belongs into "));
  EXPECT_THAT(bad.errors, HasSubstr("20-b.yaml:3: rules[2].macth: unknown key"));
}

TEST_F(ConfigFolderProgram, ANewProcessReadsThemToo) {
  write("10-a.yaml", "rules: [{name: first, match: 'jobid=y', weight: 3}]\n");
  Process old = live_.proxy().hand_over();
  EXPECT_THAT(live_.rules(), ElementsAre("jobs", "first", "default"));
  EXPECT_EQ(old.stop().code, 0);
}

TEST_F(ConfigFolderProgram, APlanKnowsThem) {
  write("10-a.yaml", "virtual_pfs: {physics: {weight: 7}}\n");
  live_.run({"reload"});
  live_.run({"record", "start", "--size", "1MiB"});
  ProxiedLink link = live_.open();
  live_.serve(link, "a");
  ASSERT_TRUE(comes_true([&] { return live_.data({"record", "show"})["written"] == 1; }));
  const std::string rules =
      live_.directory().write("set.yaml", "rules: [{name: a, match: 'jobid=a', vpfs: physics}]\n");
  const Outcome plan = live_.ctl({"rule", "plan", "-f", rules});
  EXPECT_EQ(plan.code, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr("physics"));
}

}  // namespace
}  // namespace vpfs::test
