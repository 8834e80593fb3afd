#include "tools/recording/json_lines.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/one_line.h"
#include "tools/recording/words.h"

namespace vpfs::recording {
namespace {

using nlohmann::json;
using stage::Recorded;

constexpr int kVersion = 1;

std::string in_quotes(const std::string& text) {
  return json_text(json(text));
}

// Numbers of what has been seen before, by its value.
template <typename Value>
class Numbers {
 public:
  explicit Numbers(std::vector<Value>& all) : all_(all) {}

  std::uint32_t of(const Value& value) {
    const auto [found, is_new] =
        numbers_.try_emplace(value, static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(value);
    return found->second;
  }

 private:
  std::vector<Value>& all_;
  std::map<Value, std::uint32_t> numbers_;
};

Duration ticks(std::uint32_t count) {
  return count * Recorded::kTick;
}

constexpr std::int64_t kLongest = std::int64_t{1} << 60;  // nanoseconds

// A whole number that is not negative. Throws what json throws, and std::out_of_range.
template <typename Number = std::uint64_t>
Number number_at(const json& line, const char* key,
                 std::uint64_t most = std::numeric_limits<Number>::max()) {
  const json& value = line.at(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    throw std::out_of_range(fmt::format("{}: expected a whole number from 0 to {}", key, most));
  }
  return value.get<Number>();
}

std::uint32_t ticks_at(const json& line, const char* key) {
  const auto count = std::min<std::uint64_t>(number_at(line, key), kLongest);
  return Recorded::ticks(std::chrono::nanoseconds(count));
}

// Throws std::out_of_range.
template <typename Value, std::size_t count>
Value value_at(const json& line, const char* key,
               const std::array<std::string_view, count>& words) {
  const auto word = line.at(key).get<std::string>();
  const auto value = value_of<Value>(words, word);
  if (!value) throw std::out_of_range(fmt::format("{}: \"{}\" is not known", key, word));
  return *value;
}

std::uint64_t size_at(const json& line, const char* key) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return number_at(line, key, kMost);
}

// Numbers of origins. The first is that of what came before the recording began.
class OriginNumbers {
 public:
  explicit OriginNumbers(std::vector<Origin>& all) : all_(all), numbers_(all) {
    (void)numbers_.of({});
  }

  std::uint32_t of(const Origin& origin) { return numbers_.of(origin); }
  std::uint32_t of_many() {
    if (many_ == 0) {
      many_ = static_cast<std::uint32_t>(all_.size());
      all_.emplace_back();
    }
    return many_;
  }

 private:
  std::vector<Origin>& all_;
  Numbers<Origin> numbers_;
  std::uint32_t many_ = 0;  // 0: none yet
};

// Throws what json throws, and std::out_of_range.
Recorded read_request(const json& line, Numbers<std::string>& names, OriginNumbers& origins) {
  Recorded made;
  // What arrived before the recording began is negative.
  if (!line.at("arrival_ns").is_number_integer()) {
    throw std::out_of_range("arrival_ns: expected a whole number");
  }
  made.arrival_ns = line["arrival_ns"].get<std::int64_t>();
  made.wait = ticks_at(line, "wait_ns");
  made.service = ticks_at(line, "service_ns");
  made.asked = size_at(line, "asked");
  made.moved = size_at(line, "moved");
  if (!is_sane(made)) throw std::out_of_range("arrival_ns: expected a time within a year");
  made.kind = value_at<IoKind>(line, "kind", kKinds);
  made.end = value_at<stage::RecordedEnd>(line, "end", kEnds);
  if (line.contains("held_by")) {
    made.reason = value_at<stage::RecordedReason>(line, "held_by", kReasons);
  }
  made.unscheduled = line.value("unscheduled", false);
  if (line.contains("uid")) made.uid = number_at<std::uint32_t>(line, "uid");
  if (line.contains("offset")) made.offset = number_at(line, "offset");
  if (line.contains("file")) {
    const auto text = line["file"].get<std::string>();
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), made.file, 16);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw std::out_of_range("file: expected a hexadecimal number");
    }
  }
  made.virtual_pfs = names.of(line.at("virtual_pfs").get<std::string>());
  if (line.value("one_of_many", false)) {
    made.origin = origins.of_many();
    return made;
  }
  made.origin = origins.of({.connection = number_at(line, "connection"),
                            .client = line.value("client", std::string()),
                            .jobid = line.value("job", std::string())});
  return made;
}

// Throws what json throws, and std::out_of_range.
std::uint64_t read_head(const json& line, Recording& to) {
  constexpr std::int64_t kLatest = std::int64_t{1} << 40;
  to.stage = line.value("stage", std::string());
  const std::int64_t began = std::clamp<std::int64_t>(line.at("began_at"), 0, kLatest);
  to.began = WallTime(std::chrono::seconds(began));
  to.length = std::chrono::microseconds(std::min(number_at(line, "length_us"), kLongestUs));
  to.overwritten = number_at(line, "overwritten");
  to.names_are_full = line.value("names_are_full", false);
  return number_at(line, "requests");
}

}  // namespace

void write_json_lines(const Recording& recording, const Sink& sink) {
  const bool full = recording.names_are_full ||
                    std::ranges::any_of(recording.requests, [&](const Recorded& each) {
                      return recording.is_one_of_many(each) || recording.name_of(each).empty();
                    });
  sink(fmt::format(R"({{"vpfs_recording":{},"stage":{},"began_at":{},"length_us":{},)"
                   R"("requests":{},"overwritten":{}{}}})"
                   "\n",
                   kVersion, in_quotes(recording.stage), seconds_since_epoch(recording.began),
                   microseconds_of(recording.length), recording.requests.size(),
                   recording.overwritten, full ? R"(,"names_are_full":true)" : ""));
  std::vector<std::string> names;
  for (const std::string& name : recording.names) names.push_back(in_quotes(name));
  std::vector<std::string> origins;
  for (const Origin& origin : recording.origins) {
    std::string text = fmt::format(R"("connection":{})", origin.connection);
    if (!origin.client.empty()) text += fmt::format(R"(,"client":{})", in_quotes(origin.client));
    if (!origin.jobid.empty()) text += fmt::format(R"(,"job":{})", in_quotes(origin.jobid));
    origins.push_back(std::move(text));
  }
  for (const Recorded& each : recording.requests) {
    std::string line = fmt::format(
        R"({{"arrival_ns":{},"wait_ns":{},"service_ns":{},"kind":"{}","asked":{},"moved":{},)"
        R"("virtual_pfs":{},"end":"{}",{})",
        each.arrival_ns, ticks(each.wait).count(), ticks(each.service).count(), word_of(each.kind),
        each.asked, each.moved, names[each.virtual_pfs], word_of(each.end), origins[each.origin]);
    if (each.reason != stage::RecordedReason::nothing) {
      line += fmt::format(R"(,"held_by":"{}")", word_of(each.reason));
    }
    if (recording.is_one_of_many(each)) line += R"(,"one_of_many":true)";
    if (each.unscheduled) line += R"(,"unscheduled":true)";
    if (each.uid != Recorded::kNoUser) line += fmt::format(R"(,"uid":{})", each.uid);
    if (each.file != 0) line += fmt::format(R"(,"file":"{:016x}")", each.file);
    if (each.offset != Recorded::kNoOffset) line += fmt::format(R"(,"offset":{})", each.offset);
    line += "}\n";
    sink(line);
  }
}

Result<Recording> read_json_lines(std::istream& in, const std::string& file) {
  Recording recording;
  std::string text;
  const auto wrong = [&](std::size_t line, const std::string& problem) {
    // It may quote the file, which anyone may have made.
    return fail(fmt::format("{}:{}: {}", file, line, one_short_line(problem)));
  };
  if (!std::getline(in, text)) return wrong(1, "the file is empty, or cannot be read");
  std::uint64_t count = 0;
  try {
    const json head = json::parse(text);
    const auto version = head.at("vpfs_recording").get<std::int64_t>();
    if (version != kVersion) {
      return wrong(1, fmt::format("is a recording of version {}, and this program knows {}",
                                  version, kVersion));
    }
    count = read_head(head, recording);
  } catch (const std::exception& problem) {
    return wrong(
        1, fmt::format("expected the first line of a recording of vpfsctl: {}", problem.what()));
  }
  Numbers<std::string> names(recording.names);
  OriginNumbers origins(recording.origins);
  std::size_t line = 2;
  for (; recording.requests.size() < count && std::getline(in, text); ++line) {
    try {
      recording.requests.push_back(read_request(json::parse(text), names, origins));
    } catch (const std::exception& problem) {
      return wrong(line, fmt::format("expected a request: {}", problem.what()));
    }
  }
  if (recording.requests.size() < count) {
    return wrong(line, fmt::format("expected {} requests, and the file ends after {}: it was cut",
                                   count, recording.requests.size()));
  }
  if (std::getline(in, text)) {
    return wrong(line, fmt::format("expected the end of the file after {} requests", count));
  }
  return recording;
}

}  // namespace vpfs::recording
