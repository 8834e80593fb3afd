#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/config_reader.h"

namespace vpfs {

// The whole text of the file that `errors` is about. An error says which it is: not there, a
// directory or a device, not allowed to be read, without any text, or too large to be a
// configuration. A FIFO is read if it has a writer, which may pause for 5 s at most.
[[nodiscard]] std::optional<std::string> read_config_text(ConfigErrors& errors);

// How every program reads its configuration: what parse(text, errors) makes of the file that
// `errors` is about, or nothing when there is an error.
template <typename Parse>
[[nodiscard]] auto load_config(ConfigErrors& errors, Parse parse)
    -> std::optional<std::invoke_result_t<Parse&, std::string_view, ConfigErrors&>> {
  const std::optional<std::string> text = read_config_text(errors);
  if (!text) return std::nullopt;
  auto config = parse(std::string_view(*text), errors);
  if (!errors.empty()) return std::nullopt;
  return std::optional(std::move(config));
}

}  // namespace vpfs
