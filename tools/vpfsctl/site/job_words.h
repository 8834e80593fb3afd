#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/wire/control.pb.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/command.h"

namespace vpfs::ctl {

// The words of the rule that a job gets, and its account.
struct JobWords {
  std::vector<std::string> words;
  std::string account;
  std::vector<std::string> warnings;  // what was left out, and why
};

// The words of the command line, and the wishes within the bounds in place of words of the same
// name. Neither a wish nor an account is an error: a job is registered whatever its user has asked
// for, and some batch systems let users name any account.
[[nodiscard]] JobWords job_words(const Command& command);

// Asks, and if that is refused asks again without the wishes, which the policy of a stage may not
// know. `warn` is told that.
[[nodiscard]] std::vector<ProxyAnswer> ask_with_wishes(
    const Command& command, const control::Envelope& request,
    const std::function<std::vector<ProxyAnswer>(const control::Envelope&)>& ask,
    const std::function<void(const std::string&)>& warn);

}  // namespace vpfs::ctl
