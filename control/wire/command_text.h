#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// A request as an administrator would type it ("rule start backup client 10.0.0.9 rate=100MiB/s"),
// for logs. At most some 4 KiB; a file's contents are not in it.
[[nodiscard]] std::string command_text(const Envelope& request);

}  // namespace vpfs::control
