#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// How the words of a command line are put together, before a proxy reads them.
namespace vpfs::ctl {

struct ConditionAndWords {
  std::string condition;
  std::vector<std::string> words;
};

// Splits what follows `rule start NAME`. A shell splits unquoted conditions at spaces, so words
// belong to the condition until all braces are closed and no `&` or `,` is left open.
[[nodiscard]] Result<ConditionAndWords> split_condition(const std::vector<std::string>& arguments);

// Splits a list of clients at commas outside brackets: "n[1-4,9],10.0.0.0/24" has two. This is also
// how Slurm writes lists of nodes.
[[nodiscard]] Result<std::vector<std::string>> split_clients(std::string_view list);

// A time limit in seconds, 0 for none: "8h", or as Slurm writes it: "30:00", "08:00:00", "1-12",
// "2-00:00:00", "UNLIMITED".
[[nodiscard]] Result<std::uint64_t> parse_time_limit(std::string_view text);
// A duration in whole seconds, rounded up.
[[nodiscard]] Result<std::uint64_t> parse_seconds(std::string_view text);

// The command line with Lustre's spelling made ours: rule "start NAME jobid={a b} rate=1MiB/s" in
// one argument is split at spaces outside braces. Other command lines are unchanged.
[[nodiscard]] std::vector<std::string> split_quoted_rule(std::vector<std::string> arguments);

}  // namespace vpfs::ctl
