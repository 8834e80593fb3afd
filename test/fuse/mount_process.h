#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "test/support/process.h"

namespace vpfs::test {

// Why nothing can be mounted here; "": something can.
[[nodiscard]] std::string why_no_mounts();

// A test that mounts something. It is skipped where nothing can be mounted.
class MountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  }
};

// A real vpfs-mount over a directory of its own, or of an OrangeFS. Its destructor unmounts, and
// fails the test if the program does not end with 0 then.
class MountProcess {
 public:
  struct Settings {
    // A configuration; "": none. {status_file} and {socket} in it are filled in.
    std::string config;
    std::vector<std::string> options = {"allow_other"};  // behind -o
    std::filesystem::path below = {};                    // "": a new directory
    std::string address = {};                            // "tcp://..." instead of a directory below
    std::vector<std::string> wrapper = {};               // a command that becomes the one behind it
  };
  explicit MountProcess(const Settings& settings);
  MountProcess() : MountProcess(Settings()) {}
  ~MountProcess();
  MountProcess(const MountProcess&) = delete;
  MountProcess& operator=(const MountProcess&) = delete;

  [[nodiscard]] const std::filesystem::path& below() const { return below_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_.path(); }
  [[nodiscard]] std::string socket() const { return scratch_.path() / "control"; }
  [[nodiscard]] Process& process() { return *process_; }

  // Requests a fresh status by SIGUSR1 and reads it.
  [[nodiscard]] nlohmann::json status();
  // The status once no request is left: a thread counts one after its caller has the answer.
  [[nodiscard]] nlohmann::json idle_status();
  // What vpfsctl says, asked by the control port.
  [[nodiscard]] std::string ask(std::vector<std::string> words) const;
  // Waits until so many requests are held.
  [[nodiscard]] bool wait_for_queued(std::size_t requests);

  [[nodiscard]] bool is_mounted() const;
  void start();
  // Another process takes over (its configuration has {socket}). Returns the one before, which may
  // have something left. Throws if that fails.
  [[nodiscard]] Process hand_over();
  // The same that must fail, with other arguments. Returns the process that failed.
  [[nodiscard]] Process fail_to_hand_over(std::vector<std::string> command);
  [[nodiscard]] std::string restart_socket() const { return socket() + ".restart"; }
  [[nodiscard]] const std::vector<std::string>& command() const { return command_; }
  // SIGTERM, and the program's end.
  void stop();
  // SIGKILL. The test unmounts nothing then.
  void kill();

 private:
  TemporaryDirectory scratch_;
  std::filesystem::path below_;
  std::filesystem::path path_;
  std::vector<std::string> command_;
  std::optional<Process> process_;
};

// Runs as another user, in a process of its own, and returns what `act` does.
[[nodiscard]] int as_user(uid_t uid, const std::vector<gid_t>& groups,
                          const std::function<int()>& act);

}  // namespace vpfs::test
