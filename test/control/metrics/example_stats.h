#pragma once

#include "control/wire/control.pb.h"

namespace vpfs::test {

// Statistics in which every field of metrics has another value.
[[nodiscard]] control::StatsReply example_stats();

}  // namespace vpfs::test
