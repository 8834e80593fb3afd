#pragma once

#include <functional>
#include <string>

#include "control/metrics/http_port.h"
#include "control/wire/owner.h"

namespace vpfs::control {

// HttpSource::ask of that owner, which outlives the port.
[[nodiscard]] std::function<void(Envelope, std::function<void(Envelope)>)> ask_of(Owner& owner);

// What a stage's owner tells an HTTP port: the port asks it for Stats with rules, as a caller that
// may read. So the owner is asked by two threads, if it has a control port as well. The owner
// outlives the port; it may answer from any thread.
[[nodiscard]] HttpSource http_source(Owner& owner, std::function<std::string()> not_ready);

}  // namespace vpfs::control
