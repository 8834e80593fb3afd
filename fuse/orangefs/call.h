#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "base/result.h"
#include "client/orangefs/file_system.h"
#include "fuse/orangefs/mount_worker.h"

namespace vpfs::fuse::pvfs {

// A request on names or attributes while a worker is busy with it, and the servers in the name of
// its caller. It is answered once: with take(), fail() or succeed(), or with EIO when it goes
// without. An answer that comes after the process was interrupted is dropped by the kernel.
class Call {
 public:
  // For the message that the calling worker is taking.
  explicit Call(fuse_req_t request);
  // Likewise, for a caller that is known. So are those who close a file: nothing may be read of a
  // process while it becomes another program, which closes the files of the old one. /proc would
  // wait for the process, and the process for the answer.
  Call(fuse_req_t request, client::CallerPtr caller);
  Call(Call&& other) noexcept
      : worker_(other.worker_),
        request_(std::exchange(other.request_, nullptr)),
        unique_(other.unique_),
        caller_(std::move(other.caller_)),
        servers_(std::move(other.servers_)),
        changed_(std::move(other.changed_)) {}
  Call& operator=(Call&&) = delete;
  ~Call();

  [[nodiscard]] MountWorker& worker() const { return *worker_; }
  [[nodiscard]] OrangefsFileSystem& files() const { return worker_->files(); }
  [[nodiscard]] const client::CallerPtr& caller() const { return caller_; }
  // Outlives the operations that this call waits for.
  [[nodiscard]] client::FileSystem& servers() { return servers_; }
  [[nodiscard]] fuse_req_t request() const { return request_; }

  // The call begins to cut the file, until its answer. False: no process waits for it any more, so
  // it does not begin.
  [[nodiscard]] bool begin_change(const std::shared_ptr<OpenObject>& file);

  // For the one answer: an interruption is not answered with EINTR from now on.
  [[nodiscard]] fuse_req_t take();
  void fail(int number);
  void fail(const Error& error);
  // For an operation on an object that the kernel knows. If that is gone, the answer is ESTALE, not
  // ENOENT: the kernel then looks its name up again, and finds what another node has put there.
  void fail_object(const Error& error);
  void succeed() { fail(0); }

 private:
  MountWorker* worker_;
  fuse_req_t request_;
  std::uint64_t unique_;
  client::CallerPtr caller_;
  client::FileSystem servers_;
  std::shared_ptr<OpenObject> changed_;
};

// The process does not wait any more.
[[nodiscard]] inline Error interrupted() {
  return {.message = "interrupted", .code = std::make_error_code(std::errc::interrupted)};
}

}  // namespace vpfs::fuse::pvfs
