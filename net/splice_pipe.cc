#include "net/splice_pipe.h"

#include <array>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace vpfs::net {
namespace {
// With the default of 64 KiB a message of 256 KiB takes four turns instead of one.
constexpr int kPipeCapacity = 1 << 20;
}  // namespace

std::unique_ptr<SplicePipe> SplicePipe::make() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  // The process may be over its limit of pipe pages; a small pipe works too.
  (void)::fcntl(ends[1], F_SETPIPE_SZ, kPipeCapacity);
  return std::unique_ptr<SplicePipe>(new SplicePipe(ends[0], ends[1]));
}

SplicePipe::~SplicePipe() {
  ::close(read_end_);
  ::close(write_end_);
}

ssize_t SplicePipe::fill_from(int socket, std::size_t size) {
  const ssize_t moved =
      ::splice(socket, nullptr, write_end_, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) size_ += static_cast<std::size_t>(moved);
  return moved;
}

ssize_t SplicePipe::drain_to(int socket) {
  const ssize_t moved =
      ::splice(read_end_, nullptr, socket, nullptr, size_, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (moved > 0) size_ -= static_cast<std::size_t>(moved);
  return moved;
}

std::unique_ptr<SplicePipe> PipePool::take() {
  if (idle_.empty()) return SplicePipe::make();
  std::unique_ptr<SplicePipe> pipe = std::move(idle_.back());
  idle_.pop_back();
  return pipe;
}

void PipePool::give_back(std::unique_ptr<SplicePipe> pipe) {
  if (pipe && pipe->size() == 0 && idle_.size() < kMostIdle) idle_.push_back(std::move(pipe));
}

}  // namespace vpfs::net
