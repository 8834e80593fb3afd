#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// Warns of each rule that never applies, because one before it matches all that it would; names the
// first of those. Tells only what is certain: rules that hide another one together, and patterns
// whose wildcards would have to be compared, go unnoticed.
// REQUIRES: `config` passed parse_config() with these errors, and there were none.
void warn_of_hidden_rules(const Config& config, ConfigErrors& errors);

}  // namespace vpfs::stage
