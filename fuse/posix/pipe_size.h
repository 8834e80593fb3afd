#pragma once

#include <cstddef>

#include "fuse/buffer.h"

namespace vpfs::fuse {

// The most pages of a pipe that a message with so much data takes: the head begins one, and the
// data may begin anywhere in one.
[[nodiscard]] constexpr std::size_t pages_of_message(std::size_t data) {
  return 2 + (data + Buffer::kPage - 1) / Buffer::kPage;
}

// Makes a pipe as large as that if the system allows it. Beyond fs.pipe-max-size that needs
// CAP_SYS_RESOURCE, which the calling thread uses for this call alone if it is permitted to.
// Returns the pipe's bytes, in whole pages; 0: it is not a pipe.
[[nodiscard]] std::size_t set_pipe_size(int pipe, std::size_t wanted);

}  // namespace vpfs::fuse
