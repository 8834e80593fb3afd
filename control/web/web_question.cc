#include "control/web/web_question.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "control/words/message_json.h"
#include "control/words/past_words.h"
#include "control/words/site_past.h"
#include "control/words/why_text.h"

namespace vpfs::control {
namespace {

using Json = nlohmann::ordered_json;
using words::SitePast;

constexpr std::array<std::string_view, 5> kPaths = {"/api/status", "/api/rules", "/api/changes",
                                                    "/api/series", "/api/past"};
constexpr std::uint64_t kMostBack = 24 * 3600;
constexpr std::uint32_t kMostVirtualPfs = 100;
constexpr std::size_t kLongestName = 1024;
// A stage that belongs to a site may answer more than it is asked for.
constexpr int kMostPoints = 1440;
constexpr int kMostLines = 128;
constexpr std::size_t kMostRows = 1000;

struct Parameters {
  std::uint64_t back = 600;
  std::string name;
};

std::optional<std::string> decoded(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    char letter = text.front();
    std::size_t taken = 1;
    if (letter == '%') {
      std::uint8_t byte = 0;
      if (text.size() < 3) return std::nullopt;
      const auto read = std::from_chars(text.data() + 1, text.data() + 3, byte, 16);
      if (read.ptr != text.data() + 3) return std::nullopt;
      letter = static_cast<char>(byte);
      taken = 3;
    } else if (letter == '+') {
      letter = ' ';
    }
    result += letter;
    text.remove_prefix(taken);
  }
  if (valid_utf8(result) != result) return std::nullopt;
  return result;
}

std::expected<Parameters, std::string> read_parameters(std::string_view query) {
  Parameters read;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::optional<std::string> value =
        decoded(part.substr(std::min(part.size(), equals + 1)));
    if (key == "back" && value) {
      const char* const end = value->data() + value->size();
      const auto number = std::from_chars(value->data(), end, read.back);
      if (number.ec == std::errc() && number.ptr == end && read.back > 0 &&
          read.back <= kMostBack) {
        continue;
      }
      return std::unexpected(fmt::format("back: expected seconds, 1 to {}", kMostBack));
    }
    if (key == "name" && value && value->size() <= kLongestName) {
      read.name = *value;
      continue;
    }
    if (key == "name") return std::unexpected("name: expected a name of at most 1024 bytes");
    return std::unexpected("expected back= and name=");
  }
  return read;
}

// A question about the past, of the one that answers or of all its stages.
template <typename Fill>
Envelope of_the_past(bool is_site, Fill fill) {
  Envelope request;
  fill(is_site ? *request.mutable_forward()->mutable_request() : request);
  return request;
}

// What one server told, or why it told nothing.
struct Told {
  std::string server;
  const Envelope* reply;
};
std::vector<Told> told(const Envelope& reply) {
  if (!reply.has_forward_reply()) return {{.server = "", .reply = &reply}};
  std::vector<Told> all;
  for (const ForwardReply::Answer& each : reply.forward_reply().answers()) {
    all.push_back({.server = each.stage(), .reply = &each.answer()});
  }
  return all;
}

using Numbers = google::protobuf::RepeatedField<std::uint64_t>;

// "": each line of a series has a number of each measure for each of its points, or nothing at all,
// and there is no more than is asked for.
std::string what_is_wrong(const SeriesReply& series) {
  const int points = series.begin_at_size();
  if (points > kMostPoints || series.lines_size() > kMostLines) return "it is too long";
  const auto is_whole = [points](const SeriesLine& line) {
    const auto all = {&line.read_bytes(),    &line.written_bytes(), &line.operations(),
                      &line.held_limit_us(), &line.held_share_us(), &line.held_kept_us(),
                      &line.held_depth_us(), &line.held_class_us(), &line.held_client_us()};
    const int size = line.read_bytes_size();
    return (size == 0 || size == points) &&
           std::ranges::all_of(all, [&](const Numbers* of) { return of->size() == size; });
  };
  if (series.length_us_size() != points || !std::ranges::all_of(series.lines(), is_whole) ||
      !is_whole(series.others())) {
    return "not all of it has the same number of points";
  }
  if (std::ranges::any_of(series.length_us(),
                          [](auto each) { return each > kMostBack * 1'000'000; })) {
    return "a point is longer than a day";
  }
  return "";
}

// REQUIRES: nothing is wrong with its series.
Json columns(const SeriesLine& line) {
  Json bytes = Json::array();
  for (int i = 0; i < line.read_bytes_size(); ++i) {
    bytes.push_back(line.read_bytes(i) + line.written_bytes(i));
  }
  Json held;
  held["limit"] = line.held_limit_us();
  held["share"] = line.held_share_us();
  held["kept"] = line.held_kept_us();
  held["depth"] = line.held_depth_us();
  held["class"] = line.held_class_us();
  held["client"] = line.held_client_us();
  Json made;
  made["name"] = line.name();
  made["bytes"] = std::move(bytes);
  made["operations"] = line.operations();
  made["held_us"] = std::move(held);
  return made;
}

Json problem_json(const std::string& server, const std::string& text) {
  return {{"server", server}, {"text", text}};
}

Json problems_of(const std::vector<Told>& all) {
  Json problems = Json::array();
  for (const Told& each : all) {
    if (!each.reply->has_error()) continue;
    problems.push_back(problem_json(each.server, each.reply->error().text()));
  }
  return problems;
}

std::string text_of(const Json& json) {
  return json_text(json) + "\n";
}

std::string series_json(const Envelope& reply) {
  const std::vector<Told> all = told(reply);
  Json servers = Json::array();
  Json problems = problems_of(all);
  for (const Told& each : all) {
    if (!each.reply->has_series_reply()) continue;
    const SeriesReply& series = each.reply->series_reply();
    if (const std::string wrong = what_is_wrong(series); !wrong.empty()) {
      problems.push_back(problem_json(each.server, "its series cannot be shown: " + wrong));
      continue;
    }
    Json lines = Json::array();
    for (const SeriesLine& line : series.lines()) lines.push_back(columns(line));
    Json server;
    server["server"] = each.server;
    server["begin_at"] = series.begin_at();
    server["length_us"] = series.length_us();
    server["lines"] = std::move(lines);
    server["others"] = columns(series.others());
    server["known_from_at"] = series.known_from_at();
    servers.push_back(std::move(server));
  }
  Json answer;
  answer["servers"] = std::move(servers);
  answer["problems"] = std::move(problems);
  return text_of(answer);
}

Json use_json(const SitePast& past, const PastOf& who) {
  Json row = words::to_json(who);
  row["delivered_bytes"] = words::bytes_of(who);
  row["entitled_bytes"] = words::as_bytes(who.entitled_cost(), who);
  row["wanted_bytes"] = words::as_bytes(who.wanted_cost(), who);
  if (who.has_lag_cost()) {
    row["lag_bytes"] = words::as_bytes(words::whole_cost(who.lag_cost()), who);
    row["lag_bound_bytes"] = words::as_bytes(words::whole_cost(who.lag_bound_cost()), who);
  }
  const words::TimeParts parts = words::time_parts(past, who.name());
  row["parts"] = {{"limit", parts.limit},         {"share", parts.share},
                  {"kept", parts.kept_slot},      {"depth", parts.depth},
                  {"class", parts.traffic_class}, {"client", parts.slow_client},
                  {"server", parts.server},       {"rest", parts.rest}};
  return row;
}

std::string past_json(const WebQuestion& question, const Envelope& reply) {
  const std::vector<Told> all = told(reply);
  std::vector<SitePast::Server> servers;
  for (const Told& each : all) {
    if (!each.reply->has_past_reply()) continue;
    servers.push_back({.name = each.server.empty() ? "this server" : each.server,
                       .reply = each.reply->past_reply()});
  }
  const SitePast past = words::add_up(std::move(servers));
  std::vector<const PastOf*> order;
  for (const auto& [name, who] : past.virtual_pfs) order.push_back(&who);
  std::ranges::sort(order, [](const PastOf* one, const PastOf* other) {
    return one->cost() != other->cost() ? one->cost() > other->cost() : one->name() < other->name();
  });
  Json rows = Json::array();
  // Those that are asked about are shown in words as well, however little they did.
  for (const PastOf* const who : order | std::views::take(kMostRows)) {
    rows.push_back(use_json(past, *who));
  }
  Json answer;
  answer["from_at"] = past.from_at;
  answer["to_at"] = past.to_at;
  answer["known_from_at"] = past.known_from_at;
  answer["virtual_pfs"] = std::move(rows);
  if (!question.name.empty()) {
    const Result<std::string> why = words::why_text(past, question.name);
    answer["why"] = why ? *why : why.error().message;
  }
  answer["problems"] = problems_of(all);
  return text_of(answer);
}

}  // namespace

bool is_web_question(std::string_view path) {
  return std::ranges::find(kPaths, path) != kPaths.end();
}

std::expected<WebQuestion, std::string> read_web_question(std::string_view path,
                                                          std::string_view query, bool is_site) {
  std::expected<Parameters, std::string> read = read_parameters(query);
  if (!read) return std::unexpected(read.error());
  WebQuestion question;
  if (path == "/api/status") {
    question.request.mutable_status();
  } else if (path == "/api/rules") {
    question.request.mutable_rule()->set_action(Rule::LIST);
  } else if (path == "/api/changes") {
    question.request.mutable_rule()->set_action(Rule::HISTORY);
  } else if (path == "/api/series") {
    question.request = of_the_past(is_site, [&](Envelope& request) {
      request.mutable_series()->set_back_seconds(read->back);
    });
  } else {
    question.request = of_the_past(is_site, [&](Envelope& request) {
      Past& past = *request.mutable_past();
      past.set_back_seconds(read->back);
      past.set_name(read->name);
      past.set_most(kMostVirtualPfs);
    });
    question.name = std::move(read->name);
  }
  return question;
}

std::expected<std::string, Error> web_answer(const WebQuestion& question, const Envelope& reply) {
  if (reply.has_error()) return std::unexpected(reply.error());
  const Envelope& asked = question.request;
  if (asked.has_status()) return reply.status_reply().json() + "\n";
  if (asked.has_rule()) return text_of(words::to_json(reply.rule_reply()));
  const Envelope& inner = asked.has_forward() ? asked.forward().request() : asked;
  return inner.has_series() ? series_json(reply) : past_json(question, reply);
}

}  // namespace vpfs::control
