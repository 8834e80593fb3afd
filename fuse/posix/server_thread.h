#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "fuse/posix/server.h"
#include "fuse/posix/splice_pipe.h"

namespace vpfs::fuse {

// One thread of a server, with a channel of its own.
class Server::ServerThread {
 public:
  ServerThread(Server& server, std::unique_ptr<Channel> channel);
  ~ServerThread() = default;
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  [[nodiscard]] Result<void> start();
  // Waits for its end.
  void join() { thread_.join(); }

  // If this thread works on the request and its process is to be obeyed, answers a read with EINTR:
  // the work goes on, and its answer is dropped. Nothing: the thread does something else. Any
  // thread.
  [[nodiscard]] std::optional<Finding> look_at_interrupted(std::uint64_t unique);
  // It has not asked for what to do before. For this thread.
  [[nodiscard]] bool is_new() { return std::exchange(is_new_, false); }
  // Handles the signal that interrupts a thread that reads.
  static void prepare_signal();
  // What it does, for a hand-over. Working: it may change what the mount knows. Staying: it waits
  // for the file system below, in a call that changes nothing of that.
  enum class Doing : std::uint8_t { nothing, reading, working, staying };
  // It gets a request, which is under way from now on. For this thread.
  void begin_work(const IoRequest& request) {
    does(Doing::working);
    note(request);
  }
  // While it is the same number, the thread has done the same.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }
  [[nodiscard]] static Doing doing(std::uint64_t turn) { return static_cast<Doing>(turn % 4); }
  // If it waits for a message, it comes back without one, mostly. REQUIRES: Server::reading_mutex_
  // is locked.
  void interrupt_reading();
  // The request that it works on, and what the answer goes through.
  [[nodiscard]] Stays under_way() const {
    return {.channel = through_,
            .unique = unique_,
            .holder = {.process = process_, .uid = uid_},
            .is_early = answers_through_ != nullptr};
  }

  // It will sleep, and keeps no memory meanwhile. For this thread.
  void rest();

 private:
  void run();
  void does(Doing what) { turn_ = (turn_ | 3U) + 1 + static_cast<std::uint64_t>(what); }
  // Waits for a message with `read`. Nothing::now too while the server is frozen.
  template <typename Read>
  [[nodiscard]] auto wait_for_message(Read read) -> decltype(read());
  // The next message in the buffer; empty if it is dealt with already.
  [[nodiscard]] std::expected<std::span<std::byte>, Channel::Nothing> receive();
  // The same of a message in the inlet.
  [[nodiscard]] std::span<std::byte> unpack(std::size_t size);
  // A write that its user has no memory for, which is in the inlet.
  void keep_elsewhere(const fuse_in_header& head, const fuse_write_in& body, std::size_t size);
  // Counts a read or write. False: its user has as many as it may, and the request has its answer.
  [[nodiscard]] bool count(std::unique_ptr<IoRequest>& request);
  [[nodiscard]] std::unique_ptr<IoRequest> new_write(const fuse_in_header& head,
                                                     const fuse_write_in& body);
  void handle(std::span<std::byte> message);
  void handle_data(const fuse_in_header& head, std::span<std::byte> message);
  void pass(std::unique_ptr<IoRequest> request, std::uint64_t size);
  // A request that does not pass the gate.
  [[nodiscard]] std::unique_ptr<IoRequest> new_call(const fuse_in_header& head, uid_t charged,
                                                    std::span<const std::byte> message);
  [[nodiscard]] std::string job_of(const fuse_in_header& head);
  void call(const fuse_in_header& head, std::span<std::byte> message);
  // Does everything in go_, and what that lets go.
  void work();
  // False: it has not begun. It would wait, and has a slot, or the server is frozen.
  [[nodiscard]] bool perform(IoRequest& request);
  // Has libfuse do it. False: it could not begin. One that may wait is done again and again until
  // it can, or the server is frozen.
  [[nodiscard]] bool process(Channel& channel, std::span<std::byte> message, bool may_wait);
  // A request that has not begun gives its thread away, and waits as a call that passes no gate.
  void put_off(std::unique_ptr<IoRequest> request);
  // Fills in what is known of the request under way.
  void note(const IoRequest& request);
  void read_data(IoRequest& request);
  void write_data(IoRequest& request);
  [[nodiscard]] std::unique_ptr<IoRequest> new_request(const fuse_in_header& head);
  void recycle(std::unique_ptr<IoRequest> request);
  [[nodiscard]] Buffer& buffer();

  Server& server_;
  const std::unique_ptr<Channel> channel_;
  std::unique_ptr<Buffer> buffer_;
  SplicePipe pipe_;
  MessagePipe inlet_;
  std::vector<std::unique_ptr<IoRequest>> spare_;
  std::vector<IoRequest*> let_go_;  // by the gate
  std::vector<IoRequest*> go_;      // they have passed their door
  bool is_new_ = true;

  // The request under way; 0: none.
  std::atomic<std::uint64_t> unique_ = 0;
  std::atomic<Channel*> answers_through_ = nullptr;
  std::atomic<Channel*> through_ = nullptr;
  std::atomic<std::uint64_t> turn_ = 0;  // Doing, and above it how often that has changed
  std::atomic<pid_t> process_ = 0;
  std::atomic<uid_t> uid_ = 0;  // that it counts for
  // It could not begin yet, and is done again. Then the number of one that is to end instead: this
  // thread answers it, since the kernel may forget after an answer what the request uses.
  std::atomic<bool> waits_ = false;
  std::atomic<std::uint64_t> to_end_ = 0;
  std::thread thread_;
};

}  // namespace vpfs::fuse
