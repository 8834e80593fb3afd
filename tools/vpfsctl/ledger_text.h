#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// A row for each time in which a limit or another traffic class held a virtual PFS.
[[nodiscard]] std::string ledger_text(const control::LedgerReply& reply);

}  // namespace vpfs::ctl
