#pragma once

#include <span>
#include <string>

#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/command.h"

namespace vpfs::ctl {

// What a command prints, as text.
struct Report {
  std::string output;
  std::string errors;  // for standard error; warnings too
};

// The answers to a command in their order. Several proxies are told apart by their names.
// `condition` is the one that was sent, for errors about it.
[[nodiscard]] Report report(const Command& command, std::span<const ProxyAnswer> answers,
                            const std::string& condition);

}  // namespace vpfs::ctl
