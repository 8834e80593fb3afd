#pragma once

#include "base/config_reader.h"
#include "stage/config.h"

namespace vpfs::stage {

// Warns about each rule that never applies because an earlier rule matches everything that it
// would; the warning names the first such rule. Only certain cases are found, not rules that
// several others hide together, nor patterns whose wildcards would have to be compared. REQUIRES:
// `config` passed parse_config() with these errors, and there were none.
void warn_of_hidden_rules(const Config& config, ConfigErrors& errors);

}  // namespace vpfs::stage
