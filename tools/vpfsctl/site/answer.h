#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "control/wire/control.pb.h"

namespace vpfs::ctl {

enum class Outcome { done, refused, unreachable };

// What became of a request at one proxy.
struct ProxyAnswer {
  std::string name;  // of the proxy
  Outcome outcome = Outcome::unreachable;
  control::Envelope reply;  // what was done
  // Why it was not done.
  std::string code;
  std::string place;
  std::string text;
  bool forgiven = false;  // it was not done, and that is not a failure
};

// The answer that a proxy's message is.
[[nodiscard]] ProxyAnswer make_answer(std::string name, control::Envelope reply);
[[nodiscard]] ProxyAnswer unreachable(std::string name, std::string code, std::string text);
// It is there, and has not answered in time: it may do what was asked all the same.
[[nodiscard]] ProxyAnswer unanswered(std::string name, std::string text);

enum class ExitCode { done = 0, refused = 1, usage = 2, unreachable = 3, partly = 4 };

[[nodiscard]] ExitCode exit_code(std::span<const ProxyAnswer> answers);

// With --best-effort nothing that only means "not now" fails: a proxy that does not answer, or
// cannot do it at present, or does not know the job that ends.
void forgive(std::span<ProxyAnswer> answers, bool ends_a_job);

// {version, proxies: [{name, ok, error, data}]}.
[[nodiscard]] nlohmann::ordered_json to_json(std::span<const ProxyAnswer> answers,
                                             const std::string& version);

// The same as text; indented by so many spaces, or with -1 on one line.
[[nodiscard]] std::string answers_json(std::span<const ProxyAnswer> answers,
                                       const std::string& version, int indent);

// The same for a failure that is of no proxy, such as a wrong command line: {version, proxies: [],
// error}. `code` is that of the program.
[[nodiscard]] std::string problem_json(const std::string& problem, ExitCode code,
                                       const std::string& version);

// Lines for standard error: "vpfsctl: s0: refused: rate: needs a unit", with a mark under the place
// in `condition` where it is about the condition. Forgiven failures are warnings.
[[nodiscard]] std::string error_text(const ProxyAnswer& answer, const std::string& condition);

}  // namespace vpfs::ctl
