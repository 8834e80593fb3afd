#include "control/host/start_pages.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace vpfs::control {
namespace {

bool is_traced() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "TracerPid:") continue;
    int tracer = 0;
    return status >> tracer && tracer != 0;
  }
  return false;
}

// A segment that may be written has pages of its own, which would be lost.
int unmap_object(dl_phdr_info* object, std::size_t /*size*/, void* page_size) {
  const std::uintptr_t page = *static_cast<const std::uintptr_t*>(page_size);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const std::uintptr_t first = begin / page * page;
    const std::uintptr_t end = (begin + segment.p_filesz) / page * page;
    // An error leaves the pages as they are.
    if (end > first) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void unmap_start_pages() {
  if (is_traced()) return;
  auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  (void)::dl_iterate_phdr(unmap_object, &page_size);
}

}  // namespace vpfs::control
