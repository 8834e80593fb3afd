#include "test/fuse/mount_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/comes_true.h"
#include "test/support/places.h"

namespace vpfs::test {
namespace {

std::string filled_in(std::string text, std::string_view name, const std::string& value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    text.replace(at, name.size(), value);
  }
  return text;
}

// Whether the system lets this process mount: containers may have /dev/fuse and still refuse.
std::string why_mounting_is_refused() {
  const TemporaryDirectory scratch;
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0) return std::strerror(errno);
  const std::string options =
      "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
  const int mounted =
      ::mount("probe", scratch.path().c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str());
  const std::string why = mounted == 0 ? "" : std::strerror(errno);
  ::close(device);
  if (mounted == 0) ::umount2(scratch.path().c_str(), MNT_DETACH);
  return why;
}

}  // namespace

std::string why_no_mounts() {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) return "there is no /dev/fuse that may be used";
  if (::geteuid() != 0) return "only root may look at other users' files";
  Process probe({"fusermount3", "--version"});
  const auto exit = probe.wait();
  if (!exit || !exit->ok()) return "there is no fusermount3";
  const std::string refused = why_mounting_is_refused();
  return refused.empty() ? "" : "nothing can be mounted here: " + refused;
}

MountProcess::MountProcess(const Settings& settings)
    : below_(settings.below.empty() ? scratch_.path() / "below" : settings.below),
      path_(scratch_.path() / "mount") {
  std::filesystem::create_directories(below_);
  std::filesystem::create_directories(path_);
  const std::string source =
      settings.address.empty() ? "posix:" + below_.string() : settings.address;
  command_ = settings.wrapper;
  command_.insert(command_.end(), {program("vpfs-mount"), source, path_.string(), "-f"});
  if (!settings.config.empty()) {
    std::string text = filled_in(settings.config, "{socket}", socket());
    text = filled_in(text, "{status_file}", scratch_.path() / "status.json");
    command_.insert(command_.end(), {"-o", "config=" + scratch_.write("mount.yaml", text)});
  }
  for (const std::string& option : settings.options) {
    command_.insert(command_.end(), {"-o", option});
  }
  start();
}

MountProcess::~MountProcess() {
  if (!process_) return;
  if (process_->running()) stop();
  // What a killed one leaves behind unmounts it a moment later. A directory cannot go before.
  EXPECT_TRUE(comes_true([&] { return !is_mounted(); })) << path_ << " is still mounted";
}

void MountProcess::start() {
  process_.emplace(command_);
  ASSERT_TRUE(process_->wait_for_line("ready at", std::chrono::seconds(30)))
      << process_->output() << process_->errors();
}

Process MountProcess::hand_over() {
  std::vector<std::string> command = command_;
  command.insert(command.end(), {"--take-over", restart_socket()});
  Process next(command);
  if (!next.wait_for_line("ready at", std::chrono::seconds(30))) {
    throw std::runtime_error("no process takes over: " + next.errors() + process_->errors());
  }
  Process old = std::move(*process_);
  *process_ = std::move(next);
  return old;
}

Process MountProcess::fail_to_hand_over(std::vector<std::string> command) {
  command.insert(command.end(), {"--take-over", restart_socket()});
  Process next(command);
  if (!next.wait(std::chrono::seconds(30))) {
    throw std::runtime_error("it has not failed: " + next.errors());
  }
  return next;
}

void MountProcess::stop() {
  process_->signal(SIGTERM);
  const auto exit = process_->wait();
  EXPECT_TRUE(exit && exit->ok()) << process_->errors();
  EXPECT_FALSE(is_mounted());
}

void MountProcess::kill() {
  (void)process_->kill();
}

bool MountProcess::is_mounted() const {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" " + path_.string() + " ") != std::string::npos) return true;
  }
  return false;
}

nlohmann::json MountProcess::status() {
  const std::filesystem::path file = scratch_.path() / "status.json";
  // The first may be one that the program had begun to write before it was asked.
  for (int i = 0; i < 2; ++i) {
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    process_->signal(SIGUSR1);
    EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(file); })) << process_->errors();
  }
  return nlohmann::json::parse(read_text(file));
}

nlohmann::json MountProcess::idle_status() {
  nlohmann::json idle;
  EXPECT_TRUE(comes_true([&] {
    idle = status();
    return idle["queued"] == 0 && idle["outstanding"] == 0;
  })) << idle.dump();
  return idle;
}

bool MountProcess::wait_for_queued(std::size_t requests) {
  return comes_true([&] { return status()["queued"] == requests; });
}

std::string MountProcess::ask(std::vector<std::string> words) const {
  std::vector<std::string> command = {program("vpfsctl"), "--proxy", socket()};
  command.insert(command.end(), words.begin(), words.end());
  Process process(command);
  (void)process.wait();
  return process.output() + process.errors();
}

int as_user(uid_t uid, const std::vector<gid_t>& groups, const std::function<int()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is =
        ::setgroups(groups.size(), groups.data()) == 0 && ::setgid(uid) == 0 && ::setuid(uid) == 0;
    ::_exit(is ? act() : 111);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 112;
}

}  // namespace vpfs::test
