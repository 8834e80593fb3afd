#pragma once

#include "tools/recording/recording.h"

namespace vpfs::recording {

// A recording as a trace for ui.perfetto.dev: each request is a slice of its virtual PFS, its wait
// and its service are slices in it; counters show how many wait and how many are at the server.
void write_perfetto(const Recording& recording, const Sink& sink);

}  // namespace vpfs::recording
