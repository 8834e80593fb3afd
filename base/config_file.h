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

// The same of a stream that is open, such as standard input.
[[nodiscard]] std::optional<std::string> read_config_stream(int descriptor, ConfigErrors& errors);

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

// The folder of further files beside a main one: "proxy.d" beside "proxy.yaml".
[[nodiscard]] std::string config_folder(std::string_view main_file);

// The same text, with the files of that folder behind it (see base/config/parts.h), if there is
// one: those whose names end with ".yaml" and do not begin with ".", in the order of their names.
// Each may be empty. An error names the file.
[[nodiscard]] std::optional<std::string> read_config_texts(ConfigErrors& errors);

// load_config() for a program whose configuration may be in several files.
template <typename Parse>
[[nodiscard]] auto load_config_and_folder(ConfigErrors& errors, Parse parse)
    -> std::optional<std::invoke_result_t<Parse&, std::string_view, ConfigErrors&>> {
  const std::optional<std::string> text = read_config_texts(errors);
  if (!text) return std::nullopt;
  auto config = parse(std::string_view(*text), errors);
  if (!errors.empty()) return std::nullopt;
  return std::optional(std::move(config));
}

}  // namespace vpfs
