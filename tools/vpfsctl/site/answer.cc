#include "tools/vpfsctl/site/answer.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json_text.h"
#include "control/words/message_json.h"
#include "control/words/printable.h"

namespace vpfs::ctl {
namespace {

using words::columns_of;
using words::printable;

using Json = nlohmann::ordered_json;

constexpr const char* kNoAnswer = "no_answer";

std::string code_name(control::Error::Code code) {
  std::string name = control::Error::Code_Name(code);
  std::ranges::transform(name, name.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return name.empty() ? "unknown" : name;
}

// The part of the envelope that is the reply. The status is JSON already.
Json data_json(const control::Envelope& reply) {
  if (reply.has_status_reply()) {
    Json status = Json::parse(reply.status_reply().json(), nullptr, false);
    if (!status.is_discarded()) return status;
  }
  const auto* field =
      reply.GetReflection()->GetOneofFieldDescriptor(reply, reply.GetDescriptor()->oneof_decl(0));
  if (field == nullptr) return nullptr;
  return words::to_json(reply.GetReflection()->GetMessage(reply, field));
}

// The byte offset of "COND:7".
std::optional<std::size_t> offset_in_condition(std::string_view place) {
  constexpr std::string_view kCondition = "COND:";
  if (!place.starts_with(kCondition)) return std::nullopt;
  place.remove_prefix(kCondition.size());
  std::size_t offset = 0;
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), offset);
  if (error != std::errc() || end != place.data() + place.size()) return std::nullopt;
  return offset;
}

}  // namespace

ProxyAnswer make_answer(std::string name, control::Envelope reply) {
  ProxyAnswer answer{.name = std::move(name)};
  if (reply.has_error()) {
    answer.outcome = Outcome::refused;
    answer.code = code_name(reply.error().code());
    answer.place = reply.error().place();
    answer.text = reply.error().text();
  } else {
    answer.outcome = Outcome::done;
    answer.reply = std::move(reply);
  }
  return answer;
}

ProxyAnswer unreachable(std::string name, std::string code, std::string text) {
  return {.name = std::move(name),
          .outcome = Outcome::unreachable,
          .reply = {},
          .code = std::move(code),
          .place = {},
          .text = std::move(text)};
}

ProxyAnswer unanswered(std::string name, std::string text) {
  return unreachable(std::move(name), kNoAnswer,
                     text +
                         ": it is there but busy, and may still do what was asked; --timeout "
                         "waits longer");
}

ExitCode exit_code(std::span<const ProxyAnswer> answers) {
  std::size_t done = 0;
  std::size_t refused = 0;
  for (const ProxyAnswer& answer : answers) {
    // The proxy has the change, if only for some time.
    if (answer.code == "pending" || answer.code == "kept") return ExitCode::partly;
    if (answer.outcome == Outcome::done || answer.forgiven) {
      ++done;
    } else if (answer.outcome == Outcome::refused) {
      ++refused;
    }
  }
  if (done == answers.size()) return ExitCode::done;
  if (done > 0) return ExitCode::partly;
  return refused > 0 ? ExitCode::refused : ExitCode::unreachable;
}

void forgive(std::span<ProxyAnswer> answers, bool ends_a_job) {
  for (ProxyAnswer& answer : answers) {
    const bool not_now = answer.outcome == Outcome::unreachable ||
                         (answer.outcome == Outcome::refused && answer.code == "unavailable");
    const bool ended = ends_a_job && answer.code == "not_found";
    answer.forgiven = answer.outcome != Outcome::done && (not_now || ended);
  }
}

Json to_json(std::span<const ProxyAnswer> answers, const std::string& version) {
  Json proxies = Json::array();
  for (const ProxyAnswer& answer : answers) {
    const bool ok = answer.outcome == Outcome::done;
    Json error = nullptr;
    if (!answer.code.empty()) {
      error = {{"code", answer.code}, {"place", answer.place}, {"text", answer.text}};
    }
    proxies.push_back({{"name", answer.name},
                       {"ok", ok},
                       {"error", std::move(error)},
                       {"data", ok ? data_json(answer.reply) : Json(nullptr)}});
  }
  return {{"version", version}, {"proxies", std::move(proxies)}};
}

std::string answers_json(std::span<const ProxyAnswer> answers, const std::string& version,
                         int indent) {
  return json_text(to_json(answers, version), indent) + "\n";
}

std::string problem_json(const std::string& problem, ExitCode code, const std::string& version) {
  const char* word = "refused";
  if (code == ExitCode::usage) word = "usage";
  if (code == ExitCode::unreachable) word = "unreachable";
  Json all = to_json({}, version);
  all["error"] = {{"code", word}, {"place", ""}, {"text", problem}};
  return json_text(all, 2) + "\n";
}

std::string error_text(const ProxyAnswer& answer, const std::string& condition) {
  std::string what = answer.outcome == Outcome::refused ? "refused: " : "unreachable: ";
  if (answer.code == kNoAnswer) what.clear();
  const std::optional<std::size_t> offset = offset_in_condition(answer.place);
  const std::string place = answer.place.empty() || offset ? "" : printable(answer.place) + ": ";
  std::string text =
      fmt::format("vpfsctl: {}: {}{}{}{}\n", printable(answer.name),
                  answer.forgiven ? "warning: " : "", what, place, printable(answer.text));
  if (offset && *offset <= condition.size()) {
    const std::string before = printable(std::string_view(condition).substr(0, *offset));
    text +=
        fmt::format("  {}\n  {}^\n", printable(condition), std::string(columns_of(before), ' '));
  }
  return text;
}

}  // namespace vpfs::ctl
