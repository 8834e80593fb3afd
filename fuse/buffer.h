#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "fuse/message.h"

namespace vpfs::fuse {

// Room for one message of the kernel. The data of a write lie at the start of a page, as direct I/O
// wants them. The kernel gives it memory only where it is written.
class Buffer {
 public:
  static constexpr std::size_t kPage = 4096;

  Buffer() : memory_(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage + kLargestIo))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  [[nodiscard]] std::span<std::byte> message() const {
    return {memory_.get() + kPage - kWriteHead, kWriteHead + kLargestIo};
  }
  // Of a write, or for a read's data.
  [[nodiscard]] std::span<std::byte> data() const { return {memory_.get() + kPage, kLargestIo}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT: of aligned_alloc
  };
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace vpfs::fuse
