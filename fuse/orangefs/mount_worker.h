#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "client/orangefs/file_system.h"
#include "fuse/buffer.h"
#include "fuse/channel.h"
#include "fuse/interrupt.h"
#include "fuse/orangefs/file_system.h"
#include "fuse/orangefs/held_io.h"
#include "fuse/orangefs/running_requests.h"
#include "net/async.h"
#include "net/polling/busy_poll.h"

namespace vpfs::fuse::pvfs {

// A thread of a mounted OrangeFS: it has an event loop, a channel to the kernel and a client
// session with connections to all servers. A request stays with the worker that took it.
//
//   kernel ──message──> worker ──coroutine──> client session ──request──> proxy or server
//   kernel <──answer─── worker <──────────────────────────────response──
class MountWorker {
 public:
  using Peers = std::vector<std::unique_ptr<MountWorker>>;

  explicit MountWorker(std::size_t index) : index_(index) {}
  // REQUIRES: its thread has ended.
  ~MountWorker();
  MountWorker(const MountWorker&) = delete;
  MountWorker& operator=(const MountWorker&) = delete;

  // Opens the session. Before start(), on the caller's thread.
  [[nodiscard]] Result<void> connect(const client::MountAddress& address,
                                     const client::SessionOptions& options, const Clock& clock);
  // Before start(). Zero: it does not.
  void set_busy_poll(Duration longest) { busy_poll_.set_longest(longest); }
  // All outlive the worker; `peers` are all workers, this one too. Before any of them starts.
  // `ended` is called on the worker's thread when the file system is not mounted any more.
  void prepare(OrangefsFileSystem& files, HeldIo& held, std::unique_ptr<Channel> channel,
               Interrupts interrupts, const Peers& peers, std::function<void()> ended);
  [[nodiscard]] Result<void> start();
  // Ends the threads of all workers that have one: what is under way ends as if the connections
  // were lost. All at once, since an operation of one may wait for one of another. Call it from
  // any other thread, before a worker is destroyed.
  static void stop(const Peers& workers);

  // Work that goes on although the kernel has its answer, such as the removal of a file that has no
  // name any more. stop() waits for it a while. For the worker's thread.
  class Duty {
   public:
    explicit Duty(MountWorker& worker) : worker_(worker) { ++worker_.duties_; }
    ~Duty() { --worker_.duties_; }
    Duty(const Duty&) = delete;
    Duty& operator=(const Duty&) = delete;

   private:
    MountWorker& worker_;
  };

  // For a worker that may not come back to the kernel's messages soon: another one listens too.
  // For this worker's thread.
  void call_for_help();

  // The worker of the calling thread.
  [[nodiscard]] static MountWorker& current();

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] const client::FileSystem& session() const { return *session_; }
  [[nodiscard]] OrangefsFileSystem& files() { return *files_; }
  [[nodiscard]] Channel& channel() { return *channel_; }
  [[nodiscard]] RunningRequests& running() { return running_; }
  // The number of the message that is being taken.
  [[nodiscard]] std::uint64_t unique() const { return unique_; }

  // Runs an operation on this thread, which is the caller's.
  void spawn(net::Task<> operation);
  // How many of them run, answered or not. Any thread.
  [[nodiscard]] std::size_t operations() const { return operations_; }

  // Whether its loop has turned since the last call. Any one thread.
  [[nodiscard]] bool has_turned();

  // For so many bytes of data at least.
  [[nodiscard]] std::unique_ptr<Buffer> take_buffer(std::size_t size = kLargestIo);
  void give_back(std::unique_ptr<Buffer> buffer);

 private:
  void run();
  // Returns whether anything came.
  [[nodiscard]] bool poll(Duration longest);
  void end_thread();
  // Runs what the workers have to do on this thread instead of theirs, until nothing is left or its
  // patience ends. Returns how many are left.
  template <typename Left>
  static std::size_t finish(const Peers& workers, Duration patience, Left left);
  void begin_to_listen();
  void stop_listening();
  void wait_for_message();
  void receive();
  // Whether a worker that has taken all messages goes on listening.
  [[nodiscard]] bool goes_on_listening();
  [[nodiscard]] bool is_needed();
  void handle(std::span<std::byte> message);
  void begin_read(const fuse_in_header& head, std::span<const std::byte> message);
  void begin_write(const fuse_in_header& head, std::span<const std::byte> message);
  // Tells the process that waits for the request, if it is to be told.
  void interrupt(std::uint64_t request, std::uint64_t message);
  // The kernel is to send the message about a signal again, a little later. Any thread.
  void ask_to_tell_again(std::uint64_t message);

  const std::size_t index_;
  asio::io_context context_{1};
  const Clock* clock_ = nullptr;
  std::unique_ptr<client::FileSystem> session_;
  OrangefsFileSystem* files_ = nullptr;
  HeldIo* held_ = nullptr;
  std::unique_ptr<Channel> channel_;
  std::optional<asio::posix::stream_descriptor> readable_;
  Interrupts interrupts_ = Interrupts::of_dying;
  const Peers* peers_ = nullptr;
  std::function<void()> tell_ended_;
  RunningRequests running_;
  std::uint64_t unique_ = 0;
  // Each message wakes all workers that listen, and one of them gets it. So no more listen than
  // have to.
  std::atomic<bool> listens_ = false;
  std::atomic<std::uint64_t> begun_ = 0;  // messages
  std::atomic<std::uint64_t> done_ = 0;
  std::uint64_t seen_done_ = 0;  // of the first worker, when this one looked last
  std::atomic<int> load_ = 0;    // per cent of a processor, in the window before
  TimePoint window_begin_;
  Duration window_used_ = {};    // of the thread's processor time, when it began
  Duration window_polled_ = {};  // of that, since then: in vain or not
  net::BusyPoll busy_poll_;
  std::unique_ptr<Buffer> buffer_;
  std::vector<std::unique_ptr<Buffer>> spare_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::size_t> operations_ = 0;
  std::size_t duties_ = 0;
  std::atomic<bool> has_turned_ = true;
  std::thread thread_;
};

}  // namespace vpfs::fuse::pvfs
