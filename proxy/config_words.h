#pragma once

#include "base/config_reader.h"

namespace vpfs::proxy {

// As those of stage/config_words.h: for the top of the file, and for the mapping `proxy`.
void suggest_top_words(ConfigReader& reader);
void suggest_proxy_words(ConfigReader& reader);

}  // namespace vpfs::proxy
