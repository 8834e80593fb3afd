#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sys/types.h>

namespace vpfs::net {

// A kernel pipe that payload passes through on its way from one socket to another without a copy
// to user space. Non-blocking.
class SplicePipe {
 public:
  // Null when the process is out of descriptors, or its user of pages for pipes.
  [[nodiscard]] static std::unique_ptr<SplicePipe> make();
  ~SplicePipe();
  SplicePipe(const SplicePipe&) = delete;
  SplicePipe& operator=(const SplicePipe&) = delete;

  // Moves at most `size` bytes. Returns what read() and write() do: 0 at the end of the stream, -1
  // with errno.
  [[nodiscard]] ssize_t fill_from(int socket, std::size_t size);
  [[nodiscard]] ssize_t drain_to(int socket);
  // Bytes inside.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  SplicePipe(int read_end, int write_end) : read_end_(read_end), write_end_(write_end) {}
  int read_end_;
  int write_end_;
  std::size_t size_ = 0;
};

// Keeps empty pipes for reuse: only a stream that is blocked in the middle holds on to one. Belongs
// to one thread.
class PipePool {
 public:
  // Null as SplicePipe::make(), which is not tried again each time then.
  [[nodiscard]] std::unique_ptr<SplicePipe> take();
  // Pipes with bytes inside are closed instead.
  void give_back(std::unique_ptr<SplicePipe> pipe);

 private:
  static constexpr std::size_t kMostIdle = 16;
  static constexpr int kTakesWithout = 256;
  int not_now_ = 0;  // so many takes, less one, make none
  std::vector<std::unique_ptr<SplicePipe>> idle_;
};

}  // namespace vpfs::net
