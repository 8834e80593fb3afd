#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <asio/posix/stream_descriptor.hpp>
#include <liburing.h>

#include "base/result.h"
#include "net/signal.h"

namespace vpfs::dataserver {

// File operations through io_uring, awaited on the strand of an io_context: completions arrive by
// an eventfd. At most kDepth are under way; further ones wait.
class IoRing {
 public:
  static constexpr unsigned kDepth = 256;

  [[nodiscard]] static Result<std::unique_ptr<IoRing>> open(asio::io_context& context);
  // REQUIRES: nothing is under way.
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  // Each returns what the system call would: a count, or a negative errno. The arguments stay valid
  // until then.
  [[nodiscard]] net::Task<int> read(int file, std::span<std::byte> into, std::int64_t offset);
  [[nodiscard]] net::Task<int> write(int file, std::span<const std::byte> from,
                                     std::int64_t offset);
  [[nodiscard]] net::Task<int> sync(int file);

 private:
  struct Operation {
    explicit Operation(asio::io_context& context) : done(context.get_executor()) {}
    net::Signal done;
    int result = 0;
    bool finished = false;
  };

  explicit IoRing(asio::io_context& context);
  [[nodiscard]] net::Task<io_uring_sqe*> take_entry();
  [[nodiscard]] net::Task<int> submit(io_uring_sqe* entry);
  void wait_for_completions();
  void reap();

  asio::io_context& context_;
  io_uring ring_ = {};
  bool ready_ = false;
  asio::posix::stream_descriptor event_;
  net::Signal has_room_;
  unsigned under_way_ = 0;
  bool waiting_ = false;
};

}  // namespace vpfs::dataserver
