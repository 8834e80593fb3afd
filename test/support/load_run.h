#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/support/process.h"

namespace vpfs::test {

struct LoadRunSettings {
  std::string file_system;
  std::string applications;  // as in conf/load.yaml: "  - {name: a, size: 4 KiB}\n"
  std::string duration;      // "2 s"; empty: until stop()
  std::string warm_up = "0 s";
  bool verify = true;
  bool everybody_served = true;  // a good run needs requests of every application
  std::string more;              // further entries of the file: "keep_files: true\n"
};

// A run of vpfs-load. If something happens during the run, the test ends it by stop(): then no
// machine is too slow.
class LoadRun {
 public:
  // Makes the command that runs `command` elsewhere, such as in a network namespace.
  using Place = std::function<std::vector<std::string>(const std::vector<std::string>& command)>;
  explicit LoadRun(const LoadRunSettings& settings, const Place& place = {});

  // Waits until the files are written and the applications run.
  [[nodiscard]] bool wait_until_begun();
  // Both read the results: stop() ends the run by SIGTERM once it has begun, finish() waits for its
  // end.
  Process::Exit stop();
  Process::Exit finish();
  // stop() or finish(). The test fails after an error, a wrong byte, or an application without
  // requests.
  void expect_good_stop() { expect_good(stop()); }
  void expect_good_end() { expect_good(finish()); }

  [[nodiscard]] Process& process() { return *process_; }
  // Its output and errors.
  [[nodiscard]] std::string text() const { return process_->output() + process_->errors(); }

  // The results of an ended run; docs/tools.md explains them.
  [[nodiscard]] const nlohmann::json& results() const { return results_; }
  [[nodiscard]] const nlohmann::json& application(const std::string& name) const;
  [[nodiscard]] double mib_per_second(const std::string& name) const;
  [[nodiscard]] double total_mib_per_second() const;
  [[nodiscard]] double requests_per_second(const std::string& name) const;
  // The longest latency of a request, in seconds.
  [[nodiscard]] double longest_pause() const;

 private:
  void expect_good(const Process::Exit& exit) const;

  TemporaryDirectory directory_;
  std::string results_file_;
  bool verify_;
  bool everybody_served_;
  std::optional<Process> process_;
  nlohmann::json results_;
};

}  // namespace vpfs::test
