#pragma once

#include "base/config_reader.h"

namespace vpfs::proxy {

// The words that people try at the top of the file and in the mapping `proxy`; see
// stage/config/config_words.h.
void suggest_top_words(ConfigReader& reader);
void suggest_proxy_words(ConfigReader& reader);

}  // namespace vpfs::proxy
