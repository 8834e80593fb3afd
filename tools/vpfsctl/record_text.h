#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// What a stage says of its recording, on one line.
[[nodiscard]] std::string record_text(const control::RecordReply& reply);

}  // namespace vpfs::ctl
