#include "test/fuzz/memory_watch.h"

#include <algorithm>

extern "C" {
[[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*,
                                                                     std::size_t),
                                                            void (*)(const volatile void*));
[[gnu::weak]] std::size_t __sanitizer_get_allocated_size(const volatile void*);
}

namespace vpfs::test {
namespace {

thread_local MemoryWatch* watching = nullptr;

void allocated(const volatile void*, std::size_t size) {
  if (watching != nullptr) watching->change(static_cast<std::ptrdiff_t>(size));
}

void freed(const volatile void* memory) {
  if (watching == nullptr || memory == nullptr) return;
  watching->change(-static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(memory)));
}

void install_hooks() {
  static const bool installed = __sanitizer_install_malloc_and_free_hooks != nullptr &&
                                __sanitizer_get_allocated_size != nullptr &&
                                __sanitizer_install_malloc_and_free_hooks(allocated, freed) != 0;
  (void)installed;
}

}  // namespace

MemoryWatch::Section::Section(MemoryWatch& watch) {
  install_hooks();
  watching = &watch;
}

MemoryWatch::Section::~Section() {
  watching = nullptr;
}

void MemoryWatch::change(std::ptrdiff_t bytes) {
  live_ += bytes;
  peak_ = std::max(peak_, live_);
}

}  // namespace vpfs::test
