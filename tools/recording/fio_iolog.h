#pragma once

#include <cstdint>

#include "tools/recording/recording.h"

namespace vpfs::recording {

// The reads and writes of a recording for `fio --read_iolog`, version 3, in microseconds since the
// first. Each virtual PFS has files of its own, named by what names them on the data server, and
// offsets are those of the data server's part. Returns how many were left out, since their file or
// place is not known.
std::uint64_t write_fio_iolog(const Recording& recording, const Sink& sink);

}  // namespace vpfs::recording
