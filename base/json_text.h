#pragma once

#include <string>

namespace vpfs {

// The text of a value of nlohmann's library, in one line or indented. Bytes that are not UTF-8 are
// replaced: dump() alone throws at them.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace vpfs
