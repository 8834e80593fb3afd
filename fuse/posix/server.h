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
#include "base/saved/saved_state.h"
#include "control/handover/giver.h"
#include "fuse/buffer.h"
#include "fuse/channel.h"
#include "fuse/held_shares.h"
#include "fuse/interrupt.h"
#include "fuse/mount_point.h"
#include "fuse/posix/files/file_system.h"
#include "fuse/posix/handover/saved_requests.h"
#include "fuse/posix/held_memory.h"
#include "fuse/posix/interrupted_requests.h"
#include "fuse/posix/io_gate.h"
#include "fuse/posix/rounds.h"
#include "fuse/posix/thread_keeper.h"
#include "fuse/posix/thread_queue.h"
#include "net/descriptor.h"

namespace vpfs::fuse {

// The threads that serve a mounted directory. They block: in the kernel for the next message, in
// the file system below for its data.
//
//   kernel ──message──> thread ──arrive──> gate ──may go──> door ──> the same thread does it,
//                                           │ held            │ waits     │ and answers
//                                           └──<── may go now ┴────<──────┘ it goes on with that
//
// A thread that finds no other one waiting for messages asks for one before it does anything else,
// so a file system below that hangs stalls only what touches it. What may go although no thread
// brought or ended it (a token came, a share changed) is handed over to a thread that sleeps.
// Threads are started by a keeper, which never acts for a user.
//
// Every call below that may wait passes a door, where each user has a share of the threads
// (ThreadQueue). What the gate has let go has a door of its own: it holds a slot of the stage,
// which must not wait for a user's other calls.
class Server {
 public:
  struct Options {
    std::size_t threads = 256;  // behind each door
    bool schedules_metadata = false;
    Bytes held_bytes = {};       // for the data of writes that wait
    std::size_t held_pipes = 0;  // as many that stay in the kernel; 0: the system allows no pipe
    std::size_t largest_write = kLargestIo;
    std::size_t held_requests = 0;  // reads and writes of all users at once; 0: any number
    Interrupts interrupts = Interrupts::of_dying;
    bool frozen = false;  // from the start on, until thaw(): another process serves the mount
  };

  // All outlive it. `ended` is called once, by any thread, when the directory is not mounted any
  // more; it must only post.
  Server(MountPoint& mount, PosixFileSystem& files, IoGate& gate, const Clock& clock,
         Options options, std::function<void()> ended);
  // REQUIRES: the directory is not mounted any more, or no process uses it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // REQUIRES: the calling thread has never acted for a user.
  [[nodiscard]] Result<void> start();
  // A worker has to ask the gate what may go now.
  void ask_again();
  void set_schedules_metadata(bool on) { schedules_metadata_ = on; }

  [[nodiscard]] HeldMemory& held_memory() { return memory_; }

  // What threads work on, what waits for one, and whose.
  struct Load {
    std::size_t busy = 0;
    std::size_t waiting = 0;
    std::vector<ThreadQueue::User> users_that_wait;  // those with most first
  };
  [[nodiscard]] Load load() const;

  // A hand-over to another process (handover/server_handover.cc). From freeze() on no message is
  // read and nothing held goes, until thaw(). settle(): whether nothing is under way any more that
  // changes what the mount knows; to be asked again and again. Such a call that has not begun waits
  // for the process that takes over. What still waits for the file system below, or for a thread
  // after the gate has let it go, stays with this process. pack() borrows what is held and what
  // waits for a thread, and describes in `state` what stays. leave() is the end of what was packed
  // here. Before freeze() data of held writes are copied, which takes a while.
  void copy_held_data();
  void drop_copies() { data_.clear(); }
  void freeze();
  void thaw();
  [[nodiscard]] bool settle();
  [[nodiscard]] Result<std::vector<control::PackedParcel>> pack(SavedState& state);
  void leave();
  // The other way round, before start(): what pack() gave. After all of it, take_on_requests() has
  // the requests arrive, and returns how many.
  [[nodiscard]] Result<void> take_on(const SavedState& parcel,
                                     std::vector<net::Descriptor> descriptors);
  [[nodiscard]] std::size_t take_on_requests(const SavedState& state);
  // The process before is gone: what had stayed there fails, unless it has its answer.
  void end_of_what_stayed();

 private:
  class ServerThread;
  friend class ServerThread;
  using Finding = InterruptedRequests::Finding;

  struct Door {
    explicit Door(std::size_t threads) : queue(threads) {}
    mutable std::mutex mutex;
    ThreadQueue queue;
  };
  // What a thread does next: a request, or else reading, unless it ends.
  struct Role {
    IoRequest* request = nullptr;
    bool ends = false;
  };

  [[nodiscard]] Result<void> add_thread();
  // May wait until there is something.
  [[nodiscard]] Role next_role(ServerThread& worker);
  // A thread that waited for a message has one.
  void reader_left();
  // REQUIRES: handed_mutex_ is locked.
  void see_to_a_reader();
  [[nodiscard]] std::size_t most_threads() const;
  [[nodiscard]] ServerThread* worker_at(std::size_t index);
  // What each thread does now; those that wait for messages come back without one.
  [[nodiscard]] std::vector<std::uint64_t> look_at_threads();
  // What the gate has let go, changes what the mount knows and waits for a thread is from now on a
  // call that has not begun.
  void put_off_waiting_changes();
  // Whether a request that changes what the mount knows is on its way to a thread.
  [[nodiscard]] bool has_changes_to_do();
  // Lets in what has waited there while the server was frozen.
  void admit_scheduled();
  struct Stays {
    Channel* channel = nullptr;
    std::uint64_t unique = 0;
    Holder holder = {};
    bool is_early = false;  // it may be answered before its end
  };
  [[nodiscard]] std::vector<Stays> what_stays();
  // As look_at_interrupted(), of one that has stayed with the process before.
  [[nodiscard]] Finding look_at_what_stayed(std::uint64_t unique);

  [[nodiscard]] Door& door_of(const IoRequest& request) {
    return request.is_scheduled ? scheduled_ : calls_;
  }
  // For a call that does not pass the gate.
  [[nodiscard]] bool enter(uid_t uid);
  // While the server is frozen, the request waits.
  [[nodiscard]] bool enter_or_wait(IoRequest& request);
  // Before a call that could not begin is done again. False: the server is frozen.
  [[nodiscard]] bool wait_to_call_again(Duration step);
  // Whether a call of the user that is under way should leave the processor to others.
  [[nodiscard]] bool yields(uid_t uid);
  // Appends to `go` what may go instead.
  void leave(uid_t uid, Door& door, std::vector<IoRequest*>& go);
  // Moves what the gate has let go to `go`, except for what waits for a thread.
  void admit(std::vector<IoRequest*>& let_go, std::vector<IoRequest*>& go);
  // Has other threads do these, which have passed their door.
  void hand_over(std::span<IoRequest* const> requests);
  void admit_and_hand_over(std::vector<IoRequest*>& let_go);
  // The process of a request had a signal.
  void interrupted(std::uint64_t unique);
  // Answers a request with EINTR if its process is to be obeyed.
  [[nodiscard]] Finding look_at_interrupted(std::uint64_t unique);
  // The same of one that waits outside of threads. REQUIRES: its process is to be obeyed.
  [[nodiscard]] Finding answer_interrupted(std::unique_ptr<IoRequest> request);
  // Part of a round. Returns whether another one is needed.
  [[nodiscard]] bool look_at_some_interrupted();
  [[nodiscard]] bool unlock_pages();
  // The kernel reads the pages of these again when a process wants them.
  void fail_read_ahead(std::span<IoRequest* const> ahead);
  // A request has its answer: its user has what it kept for others.
  void give_back_shares(const IoRequest& request);
  // Takes a request out that waits in the gate or at a door. Null: it does so no more.
  [[nodiscard]] std::unique_ptr<IoRequest> withdraw_held(std::uint64_t unique);
  [[nodiscard]] std::unique_ptr<IoRequest> withdraw_waiting(std::uint64_t unique, Door& door);

  MountPoint& mount_;
  PosixFileSystem& files_;
  IoGate& gate_;
  const Clock& clock_;
  const Options options_;
  const std::function<void()> ended_;
  std::atomic<bool> schedules_metadata_;
  std::atomic<bool> told_end_ = false;
  bool may_yield_ = false;  // threads may have a low priority
  HeldMemory memory_;
  // Reads and writes, held or not. The kernel gives a bounded number of those that no process waits
  // for, and keeps further ones of all users back. It does not say which they are, so all count.
  HeldShares requests_;
  Door calls_;      // that do not pass the gate
  Door scheduled_;  // that it has let go

  std::mutex workers_mutex_;
  std::vector<std::unique_ptr<ServerThread>> workers_;

  std::mutex interrupted_mutex_;
  InterruptedRequests interrupted_;

  std::atomic<std::size_t> waiting_readers_ = 0;  // or on their way to wait
  std::atomic<std::size_t> handed_over_ = 0;      // in to_do_
  std::mutex handed_mutex_;
  std::condition_variable handed_;
  std::deque<IoRequest*> to_do_;  // in the order of release
  std::size_t threads_ = 0;       // that run or start
  std::size_t starting_ = 0;
  std::size_t sleeping_ = 0;
  bool reader_is_missing_ = false;
  bool stops_ = false;

  // What follows is for hand-overs. While it is frozen, no thread reads, no round is made, and
  // ask_again() does nothing. The first mutex is locked while threads that read are interrupted,
  // the second during a round, the third in ask_again(), which need not wait for a round.
  std::atomic<bool> frozen_;
  std::mutex reading_mutex_;
  std::mutex rounds_mutex_;
  std::mutex asking_mutex_;
  std::atomic<bool> has_left_ = false;  // another process is in charge; this one stays frozen
  std::mutex again_mutex_;
  std::condition_variable again_;  // it is frozen now
  std::vector<IoRequest*> packed_calls_;
  std::vector<std::unique_ptr<Channel>> inherited_;  // of the process before: requests came there
  std::vector<Stays> stayed_;                        // there
  SavedData data_;                                   // of held writes
  std::vector<IoRequest*> arriving_;                 // until thaw() those that pass no gate

  ThreadKeeper keeper_;
  Rounds rounds_;
};

}  // namespace vpfs::fuse
