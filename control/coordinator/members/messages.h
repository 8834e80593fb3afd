#pragma once

#include "control/members/view.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

[[nodiscard]] control::MemberView to_message(const members::View& view);
// Names and addresses of the message may be anything.
[[nodiscard]] members::View view_of(const control::MemberView& message);

}  // namespace vpfs::coordinator
