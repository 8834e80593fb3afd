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

  // If this thread works on the request and its process is to be obeyed, answers with EINTR: the
  // work goes on, and its answer is dropped. Nothing: the thread does something else. Any thread.
  [[nodiscard]] std::optional<Finding> look_at_interrupted(std::uint64_t unique);
  // It has not asked for what to do before. For this thread.
  [[nodiscard]] bool is_new() { return std::exchange(is_new_, false); }
  // It will sleep, and keeps no memory meanwhile. For this thread.
  void rest();

 private:
  void run();
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
  [[nodiscard]] std::string job_of(const fuse_in_header& head);
  void call(const fuse_in_header& head, std::span<std::byte> message);
  // Does everything in go_, and what that lets go.
  void work();
  void perform(IoRequest& request);
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
  std::atomic<pid_t> process_ = 0;
  std::atomic<uid_t> uid_ = 0;  // that it counts for
  std::thread thread_;
};

}  // namespace vpfs::fuse
