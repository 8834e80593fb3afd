// vpfs-sim as a program.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "test/support/outcome.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/replaced.h"

namespace vpfs::sim_tool {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SimProgram : public testing::Test {
 protected:
  SimProgram() { fs::create_directories(directory_); }
  ~SimProgram() override { fs::remove_all(directory_); }

  static Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::program("vpfs-sim"));
    return test::outcome_of(std::move(arguments));
  }
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  std::string read(const std::string& name) {
    std::ifstream file(directory_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path directory_ =
      fs::temp_directory_path() / ("vpfs-sim-test-" + std::to_string(::getpid()));
  const std::string example_ = test::source("conf/sim/two-jobs.yaml");
  const std::string cluster_ = test::source("conf/sim/data-placement.yaml");
};

// docs/admin/whole-site.md has these numbers.
TEST_F(SimProgram, EqualTotalsCostASumWhereRequestsAreStripedAndNothingWhereFilesAreNot) {
  std::ifstream file(test::source("conf/sim/striped.yaml"));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  text = test::replaced(text, "../proxy.yaml", test::source("conf/proxy.yaml"));
  const std::string coordinator = "coordinator:\n  policy: total\n";
  const std::string alone = test::replaced(text, coordinator, "");
  ASSERT_NE(alone, text);
  const auto whole_files = [](const std::string& scenario) {
    return test::replaced(scenario, "# datafiles: 1 ", "datafiles: 1 ");
  };
  const auto line = [&](const std::string& scenario) {
    return run({write("s.yaml", scenario)}).output;
  };
  EXPECT_THAT(line(alone), HasSubstr("all together 81.3 MiB/s"));
  EXPECT_THAT(line(text), HasSubstr("all together 72.4 MiB/s"));
  EXPECT_THAT(line(whole_files(alone)), HasSubstr("all together 109.3 MiB/s"));
  EXPECT_THAT(line(whole_files(text)), HasSubstr("all together 109.3 MiB/s"));
}

TEST_F(SimProgram, OutputThatCannotBeWrittenIsAFailure) {
  const std::string command = test::program("vpfs-sim") + " --check-config " + example_;
  const Outcome full = test::outcome_of({"sh", "-c", command + " >/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.errors, HasSubstr("vpfs-sim: standard output: No space left on device"));
  EXPECT_EQ(test::outcome_of({"sh", "-c", command + " >/dev/null"}).code, 0);
}

TEST_F(SimProgram, TheExampleGivesTheSameBytesEachTime) {
  const std::string json = (directory_ / "result.json").string();
  const std::string svg = (directory_ / "rates.svg").string();
  const Outcome first = run({example_, "--json", json, "--svg", svg});
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.errors, HasSubstr("events"));
  const std::string first_json = read("result.json");
  const std::string first_svg = read("rates.svg");
  EXPECT_THAT(first_svg, StartsWith("<svg "));
  const Outcome again = run({example_, "--json", json, "--svg", svg});
  EXPECT_EQ(again.output, first.output);
  EXPECT_EQ(read("result.json"), first_json);
  EXPECT_EQ(read("rates.svg"), first_svg);
  const auto parsed = nlohmann::json::parse(first_json);
  EXPECT_EQ(parsed[0]["applications"].size(), 3U);
}

TEST_F(SimProgram, AFileNameThatIsNotUtf8KeepsItsResults) {
  std::ifstream file(example_);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string odd =
      write("caf\xe9.yaml", test::replaced(text, "../sfq.yaml", test::source("conf/sfq.yaml")));
  const Outcome outcome = run({odd, "--json", (directory_ / "odd.json").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(nlohmann::json::parse(read("odd.json"))[0]["scenario"], "caf\ufffd.yaml");
}

TEST_F(SimProgram, TwoScenariosAreCompared) {
  std::ifstream file(example_);
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string old = "../sfq.yaml";
  text.replace(text.find(old), old.size(), test::source("conf/fifo.yaml"));
  const Outcome outcome = run({"--compare", example_, write("fifo.yaml", text)});
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("A: two-jobs.yaml: policy sfq"));
  EXPECT_THAT(outcome.output, HasSubstr("B: fifo.yaml: policy fifo"));
}

TEST_F(SimProgram, EveryExampleOfAProxyCanBeSimulated) {
  int examples = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(test::source("conf"))) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.find("\nproxy:") == std::string::npos) continue;
    ++examples;
    const std::string scenario =
        write("s.yaml", "configuration: " + entry.path().string() +
                            "\nservers: {device: {bandwidth: 50 MiB/s}}\nduration: 1 s\n"
                            "applications:\n  - {name: a, outstanding: 4}\n");
    const Outcome outcome = run({scenario});
    EXPECT_EQ(outcome.code, 0) << entry.path() << outcome.errors;
  }
  EXPECT_GE(examples, 8);
}

TEST_F(SimProgram, AResultOfALoadIsReplayed) {
  write("load.json",
        R"({"applications": [{"name": "a", "timeline": [{"t": 2.0, "ops_per_s": 30.0}]}]})");
  const std::string scenario = "configuration: " + test::source("conf/fifo.yaml") +
                               "\nservers: {device: {bandwidth: 100 MiB/s}}\nduration: 4 s\n"
                               "applications: [{name: a, arrivals: recorded, recording: ";
  const std::string json = (directory_ / "result.json").string();
  const Outcome good = run({write("s.yaml", scenario + "load.json}]\n"), "--json", json});
  ASSERT_EQ(good.code, 0) << good.errors;
  // The first second is warm-up.
  EXPECT_NEAR(nlohmann::json::parse(read("result.json"))[0]["applications"][0]["requests"], 30, 1);
  const Outcome bad = run({write("s.yaml", scenario + "missing.json}]\n")});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.errors, HasSubstr("s.yaml:4: applications[0].recording: "));
  EXPECT_THAT(bad.errors, HasSubstr("missing.json cannot be read"));
}

TEST_F(SimProgram, MistakesOfAllFilesAreNamedAndNothingIsRun) {
  const std::string proxy = write("proxy.yaml",
                                  "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\n"
                                  "scheduler: {polixy: sfq}\n");
  const std::string scenario = write("s.yaml",
                                     "configuration: proxy.yaml\n"
                                     "servers: {device: {bandwidth: 50 MiB/s}}\n"
                                     "applications:\n  - {name: a}\n");
  const std::string wrong = write("w.yaml",
                                  "configuration: proxy.yaml\n"
                                  "servers: {device: {bandwidth: 0}}\n"
                                  "applications:\n  - {name: a}\n");
  const Outcome outcome = run({scenario, wrong});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("proxy.yaml:2: scheduler.polixy: unknown key"));
  EXPECT_THAT(outcome.errors, HasSubstr("w.yaml:2: servers.device.bandwidth: "));
  EXPECT_EQ(outcome.output, "");
  const Outcome missing = run({(directory_ / "none.yaml").string()});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("none.yaml"));
  EXPECT_EQ(run({"--compare", example_}).code, 2);
  const std::string file = (directory_ / "both").string();
  const Outcome twice = run({example_, "--json", file, "--svg", file});
  EXPECT_EQ(twice.code, 2);
  EXPECT_EQ(twice.errors, "--svg: " + file + " is the file of --json\n");
  EXPECT_EQ(run({}).code, 2);
}

TEST_F(SimProgram, ACoordinatorThatCanDoNothingIsAMistakeWithALine) {
  const std::string scenario = "configuration: " + test::source("conf/fifo.yaml") +
                               "\nservers: {device: {bandwidth: 100 MiB/s}}\n"
                               "coordinator:\n  policy: total\napplications: [{name: a}]\n";
  const Outcome outcome = run({write("s.yaml", scenario), "--check-config"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("s.yaml:4: coordinator.policy: total has nothing that"));
}

TEST_F(SimProgram, AClusterGivesTheSameBytesEachTime) {
  const std::string json = (directory_ / "result.json").string();
  const std::string svg = (directory_ / "jobs.svg").string();
  for (const std::string& file : {cluster_, test::source("conf/sim/network-priority.yaml")}) {
    const Outcome first = run({file, "--json", json, "--svg", svg});
    ASSERT_EQ(first.code, 0) << first.errors;
    EXPECT_THAT(first.output, HasSubstr("busiest links"));
    EXPECT_THAT(first.errors, HasSubstr("s of virtual time"));
    EXPECT_THAT(first.errors, HasSubstr("million/s"));
    const std::string first_json = read("result.json");
    const std::string first_svg = read("jobs.svg");
    EXPECT_THAT(first_svg, StartsWith("<svg "));
    const Outcome again = run({file, "--json", json, "--svg", svg});
    EXPECT_EQ(again.output, first.output);
    EXPECT_EQ(read("result.json"), first_json);
    EXPECT_EQ(read("jobs.svg"), first_svg);
    EXPECT_FALSE(nlohmann::json::parse(first_json)[0]["links"].empty());
  }
}

TEST_F(SimProgram, PlacesOfDataAreCompared) {
  std::ifstream file(cluster_);
  std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string old = "place: internal";
  text.replace(text.find(old), old.size(), "place: external");
  const Outcome outcome = run({"--compare", cluster_, write("external.yaml", text)});
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("A: data-placement.yaml: dragonfly (2,4,2), 72 nodes"));
  EXPECT_THAT(outcome.output, HasSubstr("data external"));
}

TEST_F(SimProgram, MistakesOfAClusterAreNamed) {
  const std::string wrong = write("c.yaml",
                                  "cluster:\n"
                                  "  network: {topology: fat_tree, ports: 4, levels: 40, "
                                  "link_rate: 1 GB/s}\n"
                                  "applications:\n"
                                  "  - {name: a, tasks: 2, steps: 1, per_mille: {compute: 1}}\n");
  const Outcome outcome = run({wrong, "--check-config"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("c.yaml:2: cluster.network.topology: a 4:40 fat tree has"));
  EXPECT_THAT(outcome.errors, HasSubstr("c.yaml:4: applications[0].per_mille: adds up to 1, not"));
  EXPECT_EQ(run({cluster_, example_, "--check-config"}).code, 0);
}

TEST_F(SimProgram, ScenariosOfTwoKindsAreNotRunTogether) {
  const Outcome outcome = run({cluster_, example_});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("is not of the kind of the scenarios before it"));
}

TEST_F(SimProgram, ARunThatWouldTakeYearsFails) {
  const Outcome outcome =
      run({write("c.yaml",
                 "cluster: {network: {topology: switch, nodes: 2, link_rate: 1 GB/s},\n"
                 "          storage: {write: 1 MB/s}}\n"
                 "applications: [{name: a, tasks: 1, steps: 100000, per_mille: {write: 1000},\n"
                 "                io_size: 1024 GiB}]\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("would take more than 10 years"));
  EXPECT_EQ(outcome.output, "");
}

TEST_F(SimProgram, AnInputIsNotReplacedByAResult) {
  std::ifstream file(example_);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  write("sfq.yaml", "proxy: {listen: 127.0.0.1:1, upstream: 127.0.0.1:2}\n");
  const std::string scenario = write("s.yaml", test::replaced(text, "../sfq.yaml", "sfq.yaml"));
  const std::string kept = read("s.yaml");
  for (const char* const name : {"s.yaml", "./s.yaml", "sfq.yaml"}) {
    const Outcome outcome = run({scenario, "--json", (directory_ / name).string()});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.errors,
                HasSubstr("--json: " + (directory_ / name).string() + " would replace "));
  }
  EXPECT_EQ(read("s.yaml"), kept);
  const std::string recording = write(
      "busy.json",
      "{\"vpfs_recording\":1,\"began_at\":1,\"length_us\":1000000,\"requests\":1,"
      "\"overwritten\":0}\n"
      "{\"arrival_ns\":0,\"wait_ns\":0,\"service_ns\":1000000,\"kind\":\"read\",\"asked\":4096,"
      "\"moved\":4096,\"virtual_pfs\":\"default\",\"end\":\"done\",\"connection\":1}\n");
  const std::string config = (directory_ / "sfq.yaml").string();
  const Outcome replay = run({"--replay", recording, "--config", config, "--json", recording});
  EXPECT_EQ(replay.code, 2);
  EXPECT_EQ(replay.errors,
            "--json: " + recording + " would replace " + recording + ", which is read\n");
  const Outcome good = run({"--replay", recording, "--config", config});
  EXPECT_EQ(good.code, 0) << good.errors;
  EXPECT_THAT(good.output, HasSubstr("\nAll together: recorded "));
}

TEST_F(SimProgram, AResultThatCannotBeWrittenIsAnError) {
  const Outcome outcome = run({example_, "--json", (directory_ / "no" / "file").string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace vpfs::sim_tool
