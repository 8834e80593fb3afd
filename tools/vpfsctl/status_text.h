#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// A proxy in a few lines: what it stands for, what it does, and loudly what is not as usual.
[[nodiscard]] std::string status_text(const control::StatsReply& reply);

}  // namespace vpfs::ctl
