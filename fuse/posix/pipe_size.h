#pragma once

#include <cstddef>

namespace vpfs::fuse {

// Makes a pipe as large as that if the system allows it. Beyond fs.pipe-max-size that needs
// CAP_SYS_RESOURCE, which the calling thread uses for this call alone if it is permitted to.
// Returns the pipe's bytes, in whole pages; 0: it is not a pipe.
[[nodiscard]] std::size_t set_pipe_size(int pipe, std::size_t wanted);

}  // namespace vpfs::fuse
