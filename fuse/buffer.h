#pragma once

#include <cstddef>
#include <new>
#include <span>

#include <sys/mman.h>

#include "fuse/message.h"

namespace vpfs::fuse {

// Room for one message of the kernel. The data of a write begin at a page, as direct I/O wants
// them. The kernel gives it memory only where it is written, and has it back at once.
class Buffer {
 public:
  static constexpr std::size_t kPage = 4096;

  Buffer() : Buffer(kLargestIo) {}
  // For the data of a smaller write. REQUIRES: at most kLargestIo.
  explicit Buffer(std::size_t data)
      : size_(data),
        memory_(::mmap(nullptr, kPage + data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Buffer() { ::munmap(memory_, kPage + size_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::span<std::byte> message() const {
    return {begin() + kPage - kWriteHead, kWriteHead + size_};
  }
  // The data of a write, or room for those of a read.
  [[nodiscard]] std::span<std::byte> data() const { return {begin() + kPage, size_}; }

 private:
  [[nodiscard]] std::byte* begin() const { return static_cast<std::byte*>(memory_); }

  std::size_t size_;
  void* memory_;
};

}  // namespace vpfs::fuse
