#include "tools/vpfsctl/coordinator_status.h"

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/joined.h"
#include "base/units.h"
#include "control/words/printable.h"
#include "control/words/table.h"

namespace vpfs::ctl {
namespace {

using words::printable;
using words::Table;
using words::time_text;

// Fields that another version does not have are as empty ones.
std::string text_of(const nlohmann::json& row, const char* key) {
  const auto place = row.find(key);
  return place != row.end() && place->is_string() ? place->get<std::string>() : std::string();
}
std::uint64_t number_of(const nlohmann::json& row, const char* key) {
  const auto place = row.find(key);
  return place != row.end() && place->is_number() ? place->get<std::uint64_t>() : 0;
}
bool is(const nlohmann::json& row, const char* key) {
  const auto place = row.find(key);
  return place != row.end() && place->is_boolean() && place->get<bool>();
}
const nlohmann::json& part_of(const nlohmann::json& row, const char* key) {
  static const nlohmann::json kNone = nlohmann::json::object();
  const auto place = row.find(key);
  return place != row.end() && (place->is_object() || place->is_array()) ? *place : kNone;
}

// "1 GiB/s, 2000 iops"; "" for nothing.
std::string amounts(const nlohmann::json& row) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t amount, std::string shown) {
    if (amount > 0) parts.push_back(std::move(shown));
  };
  const std::uint64_t bytes = number_of(row, "bytes");
  const std::uint64_t operations = number_of(row, "operations");
  const std::uint64_t metadata = number_of(row, "metadata_operations");
  add(bytes, to_string(BytesPerSecond{bytes}));
  add(operations, fmt::format("{} iops", operations));
  add(metadata, fmt::format("{} metadata iops", metadata));
  return joined(parts);
}

std::string time_of(const nlohmann::json& row, const char* key) {
  return to_string(Duration(std::chrono::microseconds(number_of(row, key))));
}

std::string state_of(const nlohmann::json& stage) {
  if (!is(stage, "connected")) return "ABSENT";
  if (is(stage, "silent")) return "SILENT";
  return is(stage, "late") ? "LATE" : "ok";
}

// Why something waits there.
std::string why(const nlohmann::json& stage) {
  std::vector<std::string> parts;
  const auto add = [&](std::string more) {
    if (!more.empty()) parts.push_back(std::move(more));
  };
  add(text_of(stage, "problem"));
  const std::uint64_t lies = number_of(stage, "lies");
  if (lies > 0) add(fmt::format("{} counters that cannot be", lies));
  const nlohmann::json& rules = part_of(stage, "rules");
  const std::string problem = text_of(rules, "problem");
  if (!problem.empty()) add("rules: " + problem);
  for (const nlohmann::json& warning : part_of(rules, "warnings")) {
    if (warning.is_string()) add(warning.get<std::string>());
  }
  return joined(parts, "; ");
}

std::string stage_table(const nlohmann::json& stages) {
  Table table({{.title = "STAGE"},
               {.title = "STATE"},
               {.title = "LATE", .is_number = true},
               {.title = "JOBS", .is_number = true},
               {.title = "CAPS"},
               {.title = "RULES"},
               {.title = "ADDRESS"},
               {.title = "WHY"}});
  for (const nlohmann::json& stage : stages) {
    table.add({text_of(stage, "name"), state_of(stage),
               std::to_string(number_of(stage, "late_cycles")),
               std::to_string(number_of(stage, "jobs")), amounts(part_of(stage, "caps")),
               text_of(part_of(stage, "rules"), "state"), text_of(stage, "address"), why(stage)});
  }
  return table.empty() ? "" : "\n" + table.text();
}

// What it has of the total that its weight entitles it to.
std::string percent_of(const nlohmann::json& total) {
  const std::uint64_t entitled = number_of(total, "entitled");
  if (entitled == 0) return "";
  return fmt::format("{:.0f}", 100 * static_cast<double>(number_of(total, "cost")) /
                                   static_cast<double>(entitled));
}

// Why it is not reached.
std::string why_of_total(const nlohmann::json& total) {
  const std::string why = text_of(total, "why");
  if (why.empty()) return is(total, "reached") ? "reached" : "";
  const std::string would_help = text_of(total, "would_help");
  return would_help.empty() ? why : fmt::format("{}; would help: {}", why, would_help);
}

std::string jobs_of_site(const nlohmann::json& jobs) {
  Table table({{.title = "VIRTUAL PFS"},
               {.title = "WEIGHT", .is_number = true},
               {.title = "STAGES", .is_number = true},
               {.title = "MOST"},
               {.title = "GRANTED"},
               {.title = "TOTAL%", .is_number = true},
               {.title = "WHY"}});
  for (const nlohmann::json& job : jobs) {
    const nlohmann::json& total = part_of(job, "total");
    table.add({text_of(job, "name"), std::to_string(number_of(job, "weight")),
               std::to_string(number_of(job, "stages")), amounts(part_of(job, "most")),
               amounts(part_of(job, "granted")), percent_of(total), why_of_total(total)});
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string stages_line(const nlohmann::json& stages) {
  std::size_t connected = 0;
  std::size_t late = 0;
  for (const nlohmann::json& stage : stages) {
    connected += is(stage, "connected") ? 1 : 0;
    late += is(stage, "connected") && is(stage, "late") ? 1 : 0;
  }
  std::string text = fmt::format("{} connected", connected);
  if (late > 0) text += fmt::format(", {} LATE", late);
  if (connected < stages.size()) text += fmt::format(", {} ABSENT", stages.size() - connected);
  return text;
}

std::string rules_line(const nlohmann::json& rules) {
  std::string text =
      fmt::format("{} live, version {}", number_of(rules, "live"), number_of(rules, "version"));
  const std::uint64_t not_in_force = number_of(rules, "not_in_force");
  if (not_in_force > 0) text += fmt::format(", {} NOT IN FORCE", not_in_force);
  return text;
}

std::string parent_line(const nlohmann::json& parent) {
  const std::string address = text_of(parent, "address");
  if (!is(parent, "connected")) {
    return fmt::format("{} NOT CONNECTED: {}{}", address, text_of(parent, "problem"),
                       is(parent, "leads") ? "; its lease holds" : "");
  }
  if (!is(parent, "leads")) return address + " is connected, and does not lead";
  return fmt::format("{} leads: term {}, cycle {}", address, number_of(parent, "term"),
                     number_of(parent, "sequence"));
}

std::string texts_of(const nlohmann::json& row, const char* key) {
  std::vector<std::string> texts;
  for (const nlohmann::json& each : part_of(row, key)) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return joined(texts);
}

void add(std::string& text, std::string_view what, const std::string& value) {
  fmt::format_to(std::back_inserter(text), "{:<13}{}\n", what, printable(value));
}

// What a leader and a standby say of themselves.
std::string heading(const nlohmann::json& status) {
  std::string text;
  const std::string problem = text_of(status, "policy_problem");
  if (!problem.empty()) text += fmt::format("! THE POLICY CANNOT DIVIDE: {}\n", printable(problem));
  add(text, "coordinator", text_of(status, "name"));
  add(text, "since", time_text(static_cast<std::int64_t>(number_of(status, "started_at"))));
  add(text, "policy", text_of(status, "policy"));
  if (const std::uint64_t end = number_of(status, "certificate_ends_at"); end > 0) {
    add(text, "certificate", "ends at " + time_text(static_cast<std::int64_t>(end)));
  }
  return text;
}

std::string standby_text(const nlohmann::json& status) {
  std::string text = heading(status);
  const nlohmann::json& leader = part_of(status, "leader");
  add(text, "standby",
      leader.empty() ? "at present none leads"
                     : fmt::format("{} leads, with term {}", texts_of(leader, "addresses"),
                                   number_of(leader, "term")));
  const std::string problem = text_of(part_of(status, "store"), "problem");
  if (!problem.empty()) add(text, "store", problem);
  return text;
}

std::string leader_text(const nlohmann::json& status) {
  std::string text = heading(status);
  add(text, "term",
      fmt::format("{}, cycle {}", number_of(status, "term"), number_of(status, "sequence")));
  if (status.contains("parent")) add(text, "parent", parent_line(part_of(status, "parent")));
  const nlohmann::json& cycles = part_of(status, "cycles");
  add(text, "cycles",
      fmt::format("every {}: p50 {}, p99 {}, longest {}; {} late answers",
                  time_of(cycles, "period_us"), time_of(cycles, "p50_us"),
                  time_of(cycles, "p99_us"), time_of(cycles, "max_us"),
                  number_of(cycles, "late_answers")));
  const std::string capacity = amounts(part_of(status, "capacity"));
  add(text, "capacity", capacity.empty() ? "not divided" : capacity);
  const std::string in_force = amounts(part_of(status, "in_force"));
  if (!in_force.empty()) add(text, "in force", in_force);
  add(text, "rules", rules_line(part_of(status, "rules")));
  const nlohmann::json& stages = part_of(status, "stages");
  add(text, "stages", stages_line(stages));
  return text + stage_table(stages) + jobs_of_site(part_of(status, "jobs"));
}

// The stages that the process itself serves, of several members.
std::string member_text(const nlohmann::json& member) {
  std::string text = "\n";
  add(text, "member", text_of(member, "name"));
  const std::uint64_t view = number_of(member, "view");
  const std::string members = texts_of(member, "members");
  add(text, "view",
      view == 0 ? "was not told any yet"
                : fmt::format("{}: {}{}", view, members,
                              is(member, "takes_part") ? "" : "; this one is NOT AMONG THEM"));
  add(text, "leader", parent_line(part_of(member, "parent")));
  const nlohmann::json& stages = part_of(member, "stages");
  add(text, "its stages", stages_line(stages));
  return text + stage_table(stages);
}

}  // namespace

std::string coordinator_status_text(const std::string& json) {
  const nlohmann::json status = nlohmann::json::parse(json, nullptr, false);
  const bool is_standby = status.is_object() && is(status, "standby");
  if (!status.is_object() || (!status.contains("stages") && !is_standby)) {
    return "this is not a coordinator\n";
  }
  std::string text = is_standby ? standby_text(status) : leader_text(status);
  if (status.contains("member")) text += member_text(part_of(status, "member"));
  return text;
}

std::vector<ProxyAnswer> missing_stages(const std::string& json) {
  const nlohmann::json status = nlohmann::json::parse(json, nullptr, false);
  std::vector<ProxyAnswer> missing;
  if (!status.is_object()) return missing;
  for (const nlohmann::json* each : {&status, &part_of(status, "member")}) {
    for (const nlohmann::json& stage : part_of(*each, "stages")) {
      if (is(stage, "connected")) continue;
      const std::string problem = text_of(stage, "problem");
      missing.push_back(unreachable(text_of(stage, "name"), "unreachable",
                                    problem.empty() ? "is not connected" : problem));
    }
  }
  return missing;
}

}  // namespace vpfs::ctl
