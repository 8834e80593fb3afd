#pragma once

#include <memory>

#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "fuse/mount_options.h"
#include "fuse/mount_point.h"
#include "fuse/orangefs/file_system.h"
#include "fuse/orangefs/held_io.h"
#include "fuse/orangefs/mount_worker.h"
#include "fuse/process_jobs.h"
#include "net/async.h"
#include "net/manager/heartbeat.h"

namespace vpfs::fuse::pvfs {

// A mounted OrangeFS, embedded or real, as one program: its workers, and the signals that end it.
class OrangefsMount {
 public:
  // Asks the servers for their configuration, and mounts. Serves nothing before start(). The
  // error names the server or the directory. The clock outlives the mount.
  [[nodiscard]] static Result<std::unique_ptr<OrangefsMount>> make(const MountOptions& options,
                                                                   const Clock& clock);
  ~OrangefsMount();
  OrangefsMount(const OrangefsMount&) = delete;
  OrangefsMount& operator=(const OrangefsMount&) = delete;

  // From then on the mount answers.
  [[nodiscard]] Result<void> start();
  // Serves until it is unmounted, from outside or after SIGTERM or SIGINT. SIGUSR2 opens the log
  // file anew.
  void run();

 private:
  OrangefsMount(const MountOptions& options, const Clock& clock);
  [[nodiscard]] Result<void> connect(const Clock& clock);
  [[nodiscard]] bool has_turned();
  void await_signal();
  void drain();
  // Waits for what is still under way, and ends.
  void finish_by(TimePoint deadline);

  const MountOptions options_;
  const Clock& clock_;
  ProcessJobs jobs_;
  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::steady_timer timer_;
  net::Heartbeat heartbeat_;
  bool ended_ = false;
  std::unique_ptr<OrangefsFileSystem> files_;
  std::unique_ptr<MountPoint> mount_;
  HeldIo held_;
  MountWorker::Peers workers_;
};

}  // namespace vpfs::fuse::pvfs
