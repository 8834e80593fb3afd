#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fuse/buffer.h"
#include "fuse/channel.h"
#include "fuse/interrupt.h"
#include "fuse/mount_point.h"
#include "fuse/posix/file_system.h"
#include "fuse/posix/io_gate.h"
#include "fuse/posix/thread_keeper.h"

namespace vpfs::fuse {

// The threads that serve a mounted directory. They block: in the kernel for the next message, in
// the file system below for its data.
//
//   kernel ──message──> reader ──arrive──> gate ──may go──> the same thread does it, and answers
//                                            │ held               │ end
//                                            └──<── may go now ───┘ the thread goes on with that
//                                            one
//
// A reader that finds no other one waiting for messages asks for one first, so a file system below
// that hangs stalls only what touches it. What may go although no thread brought or ended it (a
// token came, a share changed) goes to helpers. Threads are started by a keeper, which never acts
// for a user.
class Server {
 public:
  struct Options {
    std::size_t most_readers = 256;  // and as many helpers
    bool schedules_metadata = false;
    Interrupts interrupts = Interrupts::of_dying;
  };

  // What a server asks of its owner. Called by any thread; they must only post.
  struct Owner {
    std::function<void()> ended;           // once: the directory is not mounted any more
    std::function<void()> wants_reminder;  // of interrupts, a little later
  };

  // All outlive it.
  Server(MountPoint& mount, PosixFileSystem& files, IoGate& gate, const Clock& clock,
         Options options, Owner owner);
  // REQUIRES: the directory is not mounted any more, or nobody uses it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // REQUIRES: the calling thread has never acted for a user.
  [[nodiscard]] Result<void> start();
  // Somebody has to ask the gate what may go now.
  void ask_again();
  // The kernel tells of a signal once. If it is not obeyed, a later one may be, so the kernel is
  // asked to tell again.
  void remind_of_interrupts();
  void set_schedules_metadata(bool on) { schedules_metadata_ = on; }

  // Requests that threads work on.
  [[nodiscard]] std::size_t busy() const { return busy_; }

 private:
  class Worker;
  friend class Worker;

  // By the keeper, and at the start.
  [[nodiscard]] Result<void> add_reader();
  [[nodiscard]] Result<void> add_helper();
  void want_reader_if_none_waits();
  [[nodiscard]] Worker* worker_at(std::size_t index);
  // Has helpers do these.
  void hand_over(std::span<IoRequest* const> requests);
  [[nodiscard]] IoRequest* next_handed_over();
  void helper_waits();
  // Answers a request with EINTR if its process is to be obeyed. False: it is not, or the request
  // is on its way from one place to the next, or has an answer.
  [[nodiscard]] bool interrupt(std::uint64_t unique, Worker& asked);
  // The message `unique` was about a signal that is not obeyed now.
  void interrupt_later(std::uint64_t unique);

  MountPoint& mount_;
  PosixFileSystem& files_;
  IoGate& gate_;
  const Clock& clock_;
  const Options options_;
  const Owner owner_;
  std::atomic<bool> schedules_metadata_;
  std::atomic<bool> told_end_ = false;
  std::atomic<std::size_t> waiting_readers_ = 0;
  std::atomic<std::size_t> busy_ = 0;

  std::mutex workers_mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t readers_ = 0;

  std::mutex later_mutex_;
  std::vector<std::uint64_t> later_;

  std::mutex handed_mutex_;
  std::condition_variable handed_;
  std::deque<IoRequest*> to_do_;  // in the order of release
  std::size_t helpers_ = 0;
  std::size_t waiting_helpers_ = 0;
  bool stops_ = false;

  ThreadKeeper keeper_;
};

}  // namespace vpfs::fuse
