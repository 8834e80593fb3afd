#pragma once

#include <string>

#include "proxy/config/config.h"

namespace vpfs::proxy {

inline constexpr const char* kMinimal = "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n";

inline std::string errors_of(const std::string& text) {
  ConfigErrors errors("p.yaml");
  (void)parse_config(text, errors);
  return errors.to_string();
}

}  // namespace vpfs::proxy
