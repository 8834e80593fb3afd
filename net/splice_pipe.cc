#include "net/splice_pipe.h"

#include <array>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace vpfs::net {
namespace {
// With the default of 64 KiB a message of 256 KiB takes four turns instead of one.
constexpr int kPipeCapacity = 1 << 20;
// A user beyond fs.pipe-user-pages-soft gets pipes of two pages. To copy is faster.
constexpr int kLeastCapacity = 1 << 16;

int capacity_of(int pipe) {
  const int wanted = ::fcntl(pipe, F_SETPIPE_SZ, kPipeCapacity);
  return wanted > 0 ? wanted : ::fcntl(pipe, F_GETPIPE_SZ);
}
}  // namespace

std::unique_ptr<SplicePipe> SplicePipe::make() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  std::unique_ptr<SplicePipe> pipe(new SplicePipe(ends[0], ends[1]));
  return capacity_of(ends[1]) >= kLeastCapacity ? std::move(pipe) : nullptr;
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
  if (!idle_.empty()) {
    std::unique_ptr<SplicePipe> pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  if (not_now_ > 0 && --not_now_ > 0) return nullptr;
  std::unique_ptr<SplicePipe> made = SplicePipe::make();
  if (made == nullptr) not_now_ = kTakesWithout;
  return made;
}

void PipePool::give_back(std::unique_ptr<SplicePipe> pipe) {
  if (pipe && pipe->size() == 0 && idle_.size() < kMostIdle) idle_.push_back(std::move(pipe));
}

}  // namespace vpfs::net
