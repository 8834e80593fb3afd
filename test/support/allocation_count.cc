#include "test/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace vpfs {
namespace {

std::atomic<std::uint64_t> allocations = 0;

void* counted(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::uint64_t allocation_count() {
  return allocations.load(std::memory_order_relaxed);
}

}  // namespace vpfs

// The library's other forms of new and delete (arrays, nothrow, sized) call these.
void* operator new(std::size_t size) {
  return vpfs::counted(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
