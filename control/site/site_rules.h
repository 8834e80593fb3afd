#pragma once

#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// Adds to the list of a site's rules what its stages, whose lists these are, say of them: hits, and
// what shadow rules would have held. Rules that only stages have follow those of the site, each
// with the number of stages that have it; `default` is the last. A stage that did not answer is a
// warning.
void add_lists_of_stages(control::RuleReply& list, const control::ForwardReply& stages);

}  // namespace vpfs::coordinator
