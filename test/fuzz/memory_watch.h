#pragma once

#include <cstddef>

namespace vpfs::test {

// Counts the memory that is allocated and not freed while a MemoryWatch::Section lives; sections do
// not nest. Only AddressSanitizer's allocator tells: in other builds nothing is counted.
class MemoryWatch {
 public:
  class Section {
   public:
    explicit Section(MemoryWatch& watch);
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
  };

  // The most there has been.
  [[nodiscard]] std::size_t peak() const { return static_cast<std::size_t>(peak_); }

  // From the allocator.
  void change(std::ptrdiff_t bytes);

 private:
  std::ptrdiff_t live_ = 0;
  std::ptrdiff_t peak_ = 0;
};

}  // namespace vpfs::test
