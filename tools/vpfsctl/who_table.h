#pragma once

#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

// A row for each client and each kind of request that it has shown: which rule takes it, to which
// virtual PFS, and what it shows. Behind it the registered jobs that fit.
[[nodiscard]] std::string who_text(const control::WhyReply& reply, const std::string& who);

}  // namespace vpfs::ctl
