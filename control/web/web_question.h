#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// What the page asks of a stage or a coordinator.
struct WebQuestion {
  Envelope request;
  std::string name;  // that `why` is asked of; "": of none
};

// Whether a path is one of a question.
[[nodiscard]] bool is_web_question(std::string_view path);

// Reads a question:
//
//   /api/status                   the status, as vpfsctl status --json has it
//   /api/rules, /api/changes      rules in force, and their history
//   /api/series?back=S            what the busiest did in the last S seconds, point by point
//   /api/past?back=S[&name=NAME]  sums of that time, and in words why NAME got what it got
//
// The error says what was expected. `is_site`: the answer is a coordinator's, so the past is that
// of its stages.
[[nodiscard]] std::expected<WebQuestion, std::string> read_web_question(std::string_view path,
                                                                        std::string_view query,
                                                                        bool is_site);

// The answer as JSON. An error of a single stage of a site is part of it.
[[nodiscard]] std::expected<std::string, Error> web_answer(const WebQuestion& question,
                                                           const Envelope& reply);

}  // namespace vpfs::control
