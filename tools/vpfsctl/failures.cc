#include "tools/vpfsctl/failures.h"

#include <cstdio>

#include <fmt/format.h>

namespace vpfs::ctl {

ExitCode Failures::operator()(const std::string& problem, ExitCode code) const {
  fmt::print(stderr, "vpfsctl: {}\n", problem);
  if (json_) fmt::print("{}", problem_json(problem, code, version_));
  return code;
}

ExitCode Failures::answers(std::span<const ProxyAnswer> answers) const {
  for (const ProxyAnswer& each : answers) {
    if (each.outcome != Outcome::done) fmt::print(stderr, "{}", error_text(each, ""));
  }
  if (json_) fmt::print("{}", answers_json(answers, version_, 2));
  return exit_code(answers);
}

}  // namespace vpfs::ctl
