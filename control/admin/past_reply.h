#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "control/insight/past.h"
#include "control/insight/series.h"
#include "control/wire/control.pb.h"

namespace vpfs::control {

// Which virtual PFSes of the past a reply names. What the others did is added up.
struct PastChoice {
  std::function<bool(const insight::PastOf&)> is_asked;
  std::function<bool(const insight::PastOf&)> may_be_seen;
  std::size_t most = 0;  // that are not asked about
};

// Fills in what was done. What is known of the history itself is the caller's to fill in.
void fill(PastReply& reply, const insight::Past& past, const PastChoice& choice);

void fill(SeriesReply& reply, const insight::Series& series);

// Whether the text names that virtual PFS, or its job.
[[nodiscard]] bool is_named(std::string_view text, const insight::PastOf& who);

}  // namespace vpfs::control
