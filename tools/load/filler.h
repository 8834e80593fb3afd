#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/output_queue.h"

namespace vpfs::load {

// Bytes that need not mean anything, for writes that are not verified: small ones from memory,
// large ones from an anonymous file that the kernel sends without a copy.
class Filler {
 public:
  [[nodiscard]] static Result<Filler> make(std::size_t size);
  ~Filler();
  Filler(Filler&& other) noexcept;
  Filler& operator=(Filler&&) = delete;

  [[nodiscard]] std::span<const std::byte> memory() const { return memory_; }
  [[nodiscard]] net::OutputQueue::FilePart part(std::size_t size) const {
    return {.descriptor = descriptor_, .offset = 0, .size = size};
  }

 private:
  Filler(int descriptor, std::vector<std::byte> memory);

  int descriptor_ = -1;
  std::vector<std::byte> memory_;
};

// Up to this size the copy from memory costs less than a system call more.
inline constexpr std::size_t kLargestFromMemory = 16384;

}  // namespace vpfs::load
