#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "control/admin/host_names.h"
#include "control/handover/taker.h"
#include "control/host/host.h"
#include "control/host/live.h"
#include "control/host/program.h"
#include "fuse/mount_options.h"
#include "fuse/mount_point.h"
#include "fuse/posix/config.h"
#include "fuse/posix/files/file_system.h"
#include "fuse/posix/files/forgetter.h"
#include "fuse/posix/handover/giving_mount.h"
#include "fuse/posix/io_gate.h"
#include "fuse/posix/server.h"
#include "fuse/process_jobs.h"
#include "net/inherited.h"

namespace vpfs::fuse {

// vpfs-mount posix:DIRECTORY: a stage in front of a file system that is mounted already.
class DirectoryMount final : private control::Program {
 public:
  // Mounts; serves nothing before start(). The error names the option, the key or the directory.
  // `names` and `clock` outlive the mount, and so does the process whose place it takes, if any.
  [[nodiscard]] static Result<std::unique_ptr<DirectoryMount>> make(
      const MountOptions& options, const Config& config, control::HostNames& names,
      const Clock& clock, control::Predecessor* predecessor = nullptr);
  ~DirectoryMount() override;
  DirectoryMount(const DirectoryMount&) = delete;
  DirectoryMount& operator=(const DirectoryMount&) = delete;

  // Starts the threads. From then on the mount answers.
  // In the place of another process, this process is in charge then.
  [[nodiscard]] Result<void> start();
  // Serves until it is unmounted, from outside or after SIGTERM or SIGINT.
  void run();

 private:
  DirectoryMount(const MountOptions& options, control::Live live, control::HostNames& names,
                 const Clock& clock, const control::Handed* handed, net::Inherited* inherited);

  // control::Program
  [[nodiscard]] std::shared_ptr<const control::HostConfig> read(ConfigErrors& errors,
                                                                const control::HostConfig& running,
                                                                const stage::Names& names) override;
  [[nodiscard]] std::vector<std::string> use(const control::HostConfig& file,
                                             const stage::Config& stage) override;
  [[nodiscard]] std::string status(const control::HostStatus& host) override;
  void describe(control::StatsReply& reply) override;
  void list_clients(std::function<void(std::vector<control::Client>)> done) override;
  void drain(std::string_view why) override;
  [[nodiscard]] bool has_turned() override;
  [[nodiscard]] bool draining() const override { return draining_; }
  void upgrade(const std::string& binary, UpgradeDone done) override;

  // Hand-overs (handover/taking_over.cc).
  [[nodiscard]] static Result<void> check_offer(const SavedState& offered,
                                                const MountOptions& options);
  [[nodiscard]] Result<void> take_mount(const SavedState& offered, net::Inherited& inherited);
  [[nodiscard]] SavedState constants() const;
  [[nodiscard]] Result<void> take_parcel(control::Predecessor::Parcel parcel);
  [[nodiscard]] Result<void> take_over();
  // Returns how many requests it has taken on.
  [[nodiscard]] Result<std::size_t> take_on(control::Predecessor::Everything all);
  void receive_the_rest();
  [[nodiscard]] Result<void> mount();
  [[nodiscard]] Result<void> make_server(net::Inherited* inherited);
  [[nodiscard]] bool has_left() { return giving_ && giving_->successor().has_left(); }

  // Any thread: the gate wants to be asked at that time.
  void ask_by(TimePoint time);
  void arm_question();
  void give_up_at(TimePoint deadline);
  [[nodiscard]] const Config& config() const { return gate_.settings()->config; }

  const MountOptions options_;
  control::HostNames& names_;
  const Clock& clock_;
  ProcessJobs jobs_;
  IoGate gate_;
  control::Host host_;
  asio::steady_timer question_timer_;
  asio::steady_timer drain_timer_;
  // When the gate is asked next, as the clock's count.
  std::atomic<std::int64_t> asked_by_ = INT64_MAX;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> unmounted_ = false;
  std::size_t largest_write_ = 0;  // that a pipe holds; 0: there are no such pipes
  std::size_t held_requests_ = 0;  // of all users; 0: any number
  std::unique_ptr<PosixFileSystem> files_;
  std::unique_ptr<MountPoint> mount_;
  std::unique_ptr<Forgetter> forgetter_;
  std::unique_ptr<Channel> tells_;  // the kernel of changes
  std::unique_ptr<Server> server_;
  control::Predecessor* predecessor_ = nullptr;
  std::atomic<bool> has_predecessor_ = false;  // and that one still has something
  std::unique_ptr<GivingMount> giving_;
};

}  // namespace vpfs::fuse
