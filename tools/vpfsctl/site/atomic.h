#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

struct Question {
  std::size_t proxy = 0;  // its index
  control::Envelope request;
};

// Asks all questions at once, and returns the answers in the same order.
using AskSome = std::function<std::vector<ProxyAnswer>(const std::vector<Question>& questions)>;

// How long a proxy waits for the confirmation of a change that is made everywhere or nowhere, if
// each question takes up to `timeout`.
[[nodiscard]] std::uint64_t confirm_seconds(std::chrono::nanoseconds timeout);

// Changes rules at `count` proxies, or at none. Each applies the change and waits for a
// confirmation. It is confirmed once all have it; else it is rolled back where it was applied. A
// proxy that cannot be reached for that rolls it back by itself. If `request` has a time to confirm
// in, the confirmation is left to the administrator.
//
// The code of an answer whose proxy rolled the change back is "rolled_back"; "pending" if it will
// do so by itself.
[[nodiscard]] std::vector<ProxyAnswer> change_all(std::size_t count, control::Envelope request,
                                                  std::uint64_t seconds, const AskSome& ask);

}  // namespace vpfs::ctl
