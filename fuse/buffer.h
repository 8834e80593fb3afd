#pragma once

#include <cstddef>
#include <cstdint>
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
  [[nodiscard]] static constexpr std::size_t whole_pages(std::size_t size) {
    return (size + kPage - 1) / kPage * kPage;
  }

  Buffer() : Buffer(kLargestIo) {}
  // For the data of a smaller write. REQUIRES: at most kLargestIo.
  explicit Buffer(std::size_t data)
      : size_(data),
        memory_(::mmap(nullptr, kPage + data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  // A part of a file in memory, which another process has filled: a page, and then `data` bytes.
  // The file's memory is given back with the buffer. REQUIRES: `at` is a multiple of kPage.
  Buffer(int file, std::uint64_t at, std::size_t data)
      : size_(data),
        is_of_file_(true),
        memory_(::mmap(nullptr, kPage + data, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                       static_cast<off_t>(at))) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Buffer() {
    if (is_of_file_) ::madvise(memory_, whole_pages(kPage + size_), MADV_REMOVE);
    ::munmap(memory_, kPage + size_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::span<std::byte> message() const {
    return {begin() + kPage - kWriteHead, kWriteHead + size_};
  }
  // Whether it has room for any message, and is not a part of a file.
  [[nodiscard]] bool is_of_full_size() const { return size_ == kLargestIo && !is_of_file_; }
  // The data of a write, or room for those of a read.
  [[nodiscard]] std::span<std::byte> data() const { return {begin() + kPage, size_}; }

 private:
  [[nodiscard]] std::byte* begin() const { return static_cast<std::byte*>(memory_); }

  std::size_t size_;
  bool is_of_file_ = false;
  void* memory_;
};

}  // namespace vpfs::fuse
