#include "fuse/posix/held_memory.h"

#include <utility>

#include "fuse/message.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kMostSpareBuffers = 32;

}  // namespace

HeldMemory::HeldMemory(Bytes bound, std::size_t pipes) : bytes_(bound.count), pipes_(pipes) {
  look();
}

void HeldMemory::look() {
  is_plentiful_ = bytes_.has_room_for_all(kLargestIo);
}

void HeldMemory::set_bound(Bytes bound) {
  const std::lock_guard lock(mutex_);
  bytes_.set_bound(bound.count);
  look();
}

std::uint64_t HeldMemory::room_for(uid_t uid) const {
  const std::lock_guard lock(mutex_);
  return bytes_.room_for(uid);
}

void HeldMemory::take(uid_t uid, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_.take(uid, bytes);
  look();
}

void HeldMemory::give_back(uid_t uid, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_.give_back(uid, bytes);
  look();
}

bool HeldMemory::take_pipe(uid_t uid) {
  const std::lock_guard lock(mutex_);
  if (pipes_.room_for(uid) == 0) return false;
  pipes_.take(uid, 1);
  return true;
}

void HeldMemory::take_pipe_again(uid_t uid) {
  const std::lock_guard lock(mutex_);
  pipes_.take(uid, 1);
}

void HeldMemory::give_pipe_back(uid_t uid) {
  const std::lock_guard lock(mutex_);
  pipes_.give_back(uid, 1);
}

std::unique_ptr<Buffer> HeldMemory::take_buffer() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      std::unique_ptr<Buffer> buffer = std::move(spare_.back());
      spare_.pop_back();
      return buffer;
    }
  }
  return std::make_unique<Buffer>();
}

void HeldMemory::give_back(std::unique_ptr<Buffer> buffer) {
  if (!buffer->is_of_full_size()) return;
  const std::lock_guard lock(mutex_);
  if (spare_.size() < kMostSpareBuffers) spare_.push_back(std::move(buffer));
}

std::uint64_t HeldMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_.taken();
}

std::size_t HeldMemory::pipes() const {
  const std::lock_guard lock(mutex_);
  return pipes_.taken();
}

}  // namespace vpfs::fuse
