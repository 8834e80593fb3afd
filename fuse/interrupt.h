#pragma once

#include <cstdint>

#include <sys/types.h>

namespace vpfs::fuse {

// Which signals to a waiting process end its request with EINTR.
enum class Interrupts : std::uint8_t {
  // Those that end the process. Others wait for the answer, as they do on a local disk: programs
  // do not expect EINTR from a file.
  of_dying,
  all,  // -o intr
};

// Whether an interrupt of one of the process's requests is to be obeyed.
[[nodiscard]] bool obeys(Interrupts which, pid_t process);

}  // namespace vpfs::fuse
