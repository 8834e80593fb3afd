#pragma once

#include <span>
#include <string>

#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// Says why a command failed that prints no table of answers: to people on standard error, and with
// --json to programs on standard output. Returns the exit code.
class Failures {
 public:
  // The version outlives it.
  Failures(bool json, const std::string& version) : json_(json), version_(version) {}

  // What is wrong with the command line or a file, if `code` says nothing else.
  ExitCode operator()(const std::string& problem, ExitCode code = ExitCode::usage) const;
  ExitCode refused(const std::string& problem) const { return (*this)(problem, ExitCode::refused); }
  // REQUIRES: some failed.
  ExitCode answers(std::span<const ProxyAnswer> answers) const;

 private:
  bool json_;
  const std::string& version_;
};

}  // namespace vpfs::ctl
