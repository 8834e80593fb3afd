#pragma once

#include <span>
#include <string>
#include <string_view>

namespace vpfs::ctl {

// The error about a word where a command was expected: behind `group` ("", "rule" or "job"), which
// knows `known`. It proposes what was meant, also of words that come from lctl.
[[nodiscard]] std::string unknown_command(std::string_view word, std::string_view group,
                                          std::span<const std::string> known);

// The same about an option, "--jsno" or "--jsno=x".
[[nodiscard]] std::string unknown_option(std::string_view option,
                                         std::span<const std::string> known);

}  // namespace vpfs::ctl
