#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "test/support/process.h"

namespace vpfs::test {

struct LoadRunSettings {
  std::string file_system;
  std::string applications;  // of conf/load.yaml: "  - {name: a, size: 4 KiB}\n"
  std::string duration;      // "2 s"; none: until stop()
  std::string warm_up = "0 s";
  bool verify = true;
  bool everybody_served =
      true;          // whether a good run is one in which each application did something
  std::string more;  // further entries of the file: "keep_files: true\n"
};

// vpfs-load at work. A test that has something happen during a run lets it go on until stop(): so
// no machine is too slow for it.
class LoadRun {
 public:
  // What is to be run to have `command` run at some place, as in a network namespace.
  using Place = std::function<std::vector<std::string>(const std::vector<std::string>& command)>;
  explicit LoadRun(const LoadRunSettings& settings, const Place& place = {});

  // Its files are written, its applications at work.
  [[nodiscard]] bool wait_until_begun();
  // These end it and read its results: by SIGTERM once it has begun, or by its own end.
  Process::Exit stop();
  Process::Exit finish();
  // stop() or finish(), and a failure of the test if there was an error or a wrong byte, or an
  // application did nothing.
  void expect_good_stop() { expect_good(stop()); }
  void expect_good_end() { expect_good(finish()); }

  [[nodiscard]] Process& process() { return *process_; }
  // Everything it has written.
  [[nodiscard]] std::string text() const { return process_->output() + process_->errors(); }

  // Of a run that has ended; see docs/tools.md.
  [[nodiscard]] const nlohmann::json& results() const { return results_; }
  [[nodiscard]] const nlohmann::json& application(const std::string& name) const;
  [[nodiscard]] double mib_per_second(const std::string& name) const;
  [[nodiscard]] double total_mib_per_second() const;
  [[nodiscard]] double requests_per_second(const std::string& name) const;
  // The longest time that a request took, in seconds.
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
