#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/comes_true.h"
#include "test/support/load_run.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {

// A vpfs-coordinator with a configuration of its own, which may be killed and started again.
class CoordinatorProcess {
 public:
  // `text`: the configuration without `journal`, or with a `store` instead. Those that share one
  // have one name.
  CoordinatorProcess(const std::filesystem::path& folder, const std::string& name,
                     const std::string& text)
      : journal_(folder / (name + ".journal")), log_(folder / (name + ".csv")) {
    config_ = (folder / (name + ".yaml")).string();
    const bool shares = text.find("store:") != std::string::npos;
    std::ofstream(config_) << fmt::format("name: {}\n{}{}", shares ? "site" : name,
                                          shares ? "" : "journal: " + journal_ + "\n", text);
  }

  void start(const std::vector<std::string>& more = {}) {
    launch(more);
    if (!process_->wait_for_line("vpfs-coordinator: ready", 30s)) {
      throw std::runtime_error("the coordinator does not start: " + process_->errors());
    }
  }
  // Without waiting.
  void launch(const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {program("vpfs-coordinator"), "--config", config_,
                                        "--cycle-log", log_};
    command.insert(command.end(), more.begin(), more.end());
    process_.emplace(command);
  }
  void kill() { (void)process_->kill(); }
  // SIGTERM; it must end well.
  void stop() {
    const Process::Exit exit = process_->stop();
    EXPECT_TRUE(exit.ok()) << "exit code " << exit.code << ", signal " << exit.signal << "\n"
                           << process_->errors();
  }
  void signal(int number) const { process_->signal(number); }
  // REQUIRES (this and the calls above): it was started.
  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] bool running() { return process_ && process_->running(); }
  [[nodiscard]] std::string errors() const { return process_->errors(); }
  [[nodiscard]] bool logs(const std::string& text) { return process_->wait_for_line(text, 20s); }
  // As it said at its start.
  [[nodiscard]] std::uint64_t term() const {
    const std::string output = process_->output();
    return std::stoull(output.substr(output.find(", term ") + 7));
  }
  [[nodiscard]] const std::string& journal() const { return journal_; }
  [[nodiscard]] std::string term_file() const { return journal_ + ".term"; }

  struct Cycle {
    std::uint64_t number = 0;
    std::uint64_t stages = 0;
    double milliseconds = 0;
    std::uint64_t late = 0;
  };
  // The cycles of a coordinator that was stopped.
  [[nodiscard]] std::vector<Cycle> cycles() const {
    std::istringstream lines(read_text(log_));
    std::vector<Cycle> cycles;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      Cycle cycle;
      double unused = 0;
      char comma = 0;
      std::istringstream fields(line);
      fields >> cycle.number >> comma >> cycle.stages >> comma >> cycle.milliseconds >> comma >>
          unused >> comma >> unused >> comma >> unused >> comma >> cycle.late;
      cycle.milliseconds /= 1000;
      if (fields) cycles.push_back(cycle);
    }
    return cycles;
  }

 private:
  std::string journal_;
  std::string log_;
  std::string config_;
  std::optional<Process> process_;
};

// A load of the jobs "a" and "b".
inline constexpr const char* kBothJobs =
    "  - {name: a, size: 64 KiB, outstanding: 4, read_percent: 50, pattern: random,"
    " file_size: 4 MiB}\n"
    "  - {name: b, size: 64 KiB, outstanding: 4, read_percent: 50, pattern: random,"
    " file_size: 4 MiB}\n";

// Embedded data servers, a proxy in front of each, and the configuration of a coordinator that
// dials them. Jobs "a" and "b" have virtual PFSes of weight 1.
class CoordinatorSite {
 public:
  // `device`: MiB/s of each server; 0: as fast as it can. `dialled`: so many coordinators are
  // dialled by each proxy, at their stages_socket(); 0: coordinators dial the proxies.
  explicit CoordinatorSite(std::size_t count, unsigned device = 0, std::size_t dialled = 0) {
    std::string servers;
    std::string coordinators;
    for (std::size_t i = 0; i < dialled; ++i) {
      coordinators += (i == 0 ? "" : ", ") + stages_socket(fmt::format("{}", i));
    }
    if (dialled > 0) coordinators = ", coordinator: [" + coordinators + "]";
    for (std::size_t i = 0; i < count; ++i) {
      ports_.emplace_back();
      proxies_.push_back(std::make_unique<ProxyProcess>(ProxySettings{
          .upstream = ports_.back().number(),
          .depth = 4,
          .control = fmt::format("socket: {}, name: ds{}{}", socket(i), i, coordinators),
          .virtual_pfs = "a: {weight: 1}, b: {weight: 1}",
          .rules = "[{match: {hint: {jobid: a}}, virtual_pfs: a},"
                   " {match: {hint: {jobid: b}}, virtual_pfs: b}]"}));
      servers +=
          fmt::format("  - {{alias: s{}, addresses: ['tcp://{}', 'tcp-px://127.0.0.1:{}']}}\n", i,
                      ports_.back().address(), proxies_.back()->port());
    }
    const std::string config = folder_.write(
        "server.yaml",
        fmt::format("file_system: {{name: vpfs, id: 1234}}\nservers:\n{}"
                    "storage: {{engine: memory}}\n{}log_level: warn\n"
                    "client_timeouts: {{job: 10 s, flow: 10 s, retry_limit: 1000,"
                    " retry_delay: 50 ms}}\n",
                    servers,
                    device == 0 ? "" : fmt::format("device: {{bandwidth: {} MiB/s}}\n", device)));
    for (std::size_t i = 0; i < count; ++i) {
      servers_.emplace_back(std::vector<std::string>{program("vpfs-server"), "--config", config,
                                                     "--server", fmt::format("s{}", i)});
      if (!servers_.back().wait_for_line("ready on", 30s)) {
        throw std::runtime_error("vpfs-server does not start: " + servers_.back().errors());
      }
    }
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  [[nodiscard]] std::string socket(std::size_t proxy) const {
    return folder_.path() / fmt::format("ds{}.sock", proxy);
  }
  // Where stages dial the coordinator of that number.
  [[nodiscard]] std::string stages_socket(const std::string& coordinator) const {
    return folder_.path() / ("stages" + coordinator + ".sock");
  }
  [[nodiscard]] std::size_t size() const { return proxies_.size(); }
  [[nodiscard]] ProxyProcess& proxy(std::size_t index) { return *proxies_[index]; }

  // A coordinator of all proxies; `more` are further keys.
  [[nodiscard]] CoordinatorProcess coordinator(const std::string& name,
                                               const std::string& more = "") const {
    std::string dial;
    for (std::size_t i = 0; i < size(); ++i) {
      dial += fmt::format("{}{{name: ds{}, address: {}}}", i == 0 ? "" : ", ", i, socket(i));
    }
    const bool has_stages = more.find("stages:") != std::string::npos;
    return {folder_.path(), name,
            (has_stages ? "" : fmt::format("stages: {{dial: [{}]}}\n", dial)) + more};
  }

  [[nodiscard]] LoadRunSettings load(const std::string& applications) const {
    return {.file_system = fmt::format("tcp-px://127.0.0.1:{}/vpfs", proxies_[0]->port()),
            .applications = applications,
            .duration = ""};
  }

  // The part of a proxy's status about its coordinator; null if it never had one.
  [[nodiscard]] nlohmann::json coordinated(std::size_t index) {
    const nlohmann::json status = proxy(index).status();
    return status.contains("coordinator") ? status["coordinator"] : nlohmann::json();
  }
  // Whether the proxy has a lease of that term.
  [[nodiscard]] bool is_led(std::size_t index, std::uint64_t term) {
    const nlohmann::json row = coordinated(index);
    return !row.is_null() && row["term"] == term && row.contains("lease_us_left");
  }
  [[nodiscard]] bool all_are_led(std::uint64_t term) {
    return comes_true([&] {
      for (std::size_t i = 0; i < size(); ++i) {
        if (!is_led(i, term)) return false;
      }
      return true;
    });
  }
  [[nodiscard]] bool all_are_alone() {
    return comes_true([&] {
      for (std::size_t i = 0; i < size(); ++i) {
        const nlohmann::json row = coordinated(i);
        if (!row.is_null() && row.contains("lease_us_left")) return false;
      }
      return true;
    });
  }
  // Bytes that a proxy, or all of them, has done for a job since its start.
  [[nodiscard]] std::uint64_t done(std::size_t index, const std::string& job) {
    std::uint64_t bytes = 0;
    const nlohmann::json status = proxy(index).status();
    for (const auto& pfs : status["virtual_pfs"]) {
      if (pfs["name"] == job) bytes += pfs["done_bytes"].get<std::uint64_t>();
    }
    return bytes;
  }
  [[nodiscard]] std::uint64_t done(const std::string& job) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < size(); ++i) bytes += done(i, job);
    return bytes;
  }

 private:
  TemporaryDirectory folder_;
  std::vector<ReservedPort> ports_;
  std::vector<std::unique_ptr<ProxyProcess>> proxies_;
  std::vector<Process> servers_;
};

}  // namespace vpfs::test
