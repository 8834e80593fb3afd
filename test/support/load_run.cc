#include "test/support/load_run.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/places.h"

namespace vpfs::test {

LoadRun::LoadRun(const LoadRunSettings& settings, const Place& place)
    : results_file_((directory_.path() / "results.json").string()),
      verify_(settings.verify),
      everybody_served_(settings.everybody_served) {
  const std::string config = directory_.write(
      "load.yaml",
      fmt::format("file_system: {}\nduration: {}\nwarm_up: {}\nverify: {}\n{}applications:\n{}",
                  settings.file_system, settings.duration.empty() ? "1 h" : settings.duration,
                  settings.warm_up, settings.verify, settings.more, settings.applications));
  const std::vector<std::string> command = {program("vpfs-load"), "--config", config, "--json",
                                            results_file_};
  process_.emplace(place ? place(command) : command);
}

bool LoadRun::wait_until_begun() {
  return process_->wait_for_line("the run begins", 60s);
}

Process::Exit LoadRun::stop() {
  EXPECT_TRUE(wait_until_begun()) << text();
  process_->signal(SIGTERM);
  return finish();
}

Process::Exit LoadRun::finish() {
  const auto exit = process_->wait(150s);
  if (!exit) throw std::runtime_error("vpfs-load does not end: " + text());
  results_ = nlohmann::json::parse(read_text(results_file_), nullptr, false);
  if (results_.is_discarded()) throw std::runtime_error("vpfs-load has no results: " + text());
  return *exit;
}

void LoadRun::expect_good(const Process::Exit& exit) const {
  EXPECT_TRUE(exit.ok()) << "exit code " << exit.code << ", signal " << exit.signal << "\n"
                         << text();
  for (const auto& each : results_["applications"]) {
    EXPECT_EQ(each["errors"], 0) << each["name"];
    EXPECT_EQ(each["verify_failures"], 0) << each["name"];
    if (!everybody_served_) continue;
    EXPECT_GT(each["requests"], 0) << each["name"] << " of " << results_.dump();
    if (verify_) EXPECT_GT(each["verified_blocks"], 0) << each["name"];
  }
}

const nlohmann::json& LoadRun::application(const std::string& name) const {
  for (const auto& each : results_["applications"]) {
    if (each["name"] == name) return each;
  }
  throw std::runtime_error("no application " + name);
}

double LoadRun::mib_per_second(const std::string& name) const {
  return application(name)["mib_per_s"];
}

double LoadRun::total_mib_per_second() const {
  return results_["total_mib_per_s"];
}

double LoadRun::requests_per_second(const std::string& name) const {
  return application(name)["ops_per_s"];
}

double LoadRun::longest_pause() const {
  double longest = 0;
  for (const auto& each : results_["applications"]) {
    longest = std::max(longest, each["latency_us"]["max"].get<double>() / 1e6);
  }
  return longest;
}

}  // namespace vpfs::test
