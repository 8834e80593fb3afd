#include "tools/check_policy/allocations.h"

#include <cstdlib>
#include <new>

namespace vpfs::check_policy {
namespace {

std::uint64_t made = 0;  // this program has one thread

}  // namespace

std::uint64_t allocations() {
  return made;
}

}  // namespace vpfs::check_policy

// The library's other forms of new and delete (arrays, nothrow, sized) call these.
void* operator new(std::size_t size) {
  ++vpfs::check_policy::made;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
