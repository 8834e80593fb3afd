#include "tools/sim/recording.h"

#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vpfs::sim_tool {
namespace {

constexpr double kLongestSeconds = 86400;
constexpr double kMostRequests = 1e9;  // of an interval

const nlohmann::json* application_of(const nlohmann::json& result, const std::string& name) {
  if (!result.is_object() || !result.contains("applications")) return nullptr;
  for (const nlohmann::json& each : result["applications"]) {
    if (each.is_object() && each.contains("name") && each["name"] == name) return &each;
  }
  return nullptr;
}

}  // namespace

Result<std::vector<sim::RecordedInterval>> read_recording(const std::filesystem::path& file,
                                                          const std::string& application) {
  std::ifstream in(file);
  if (!in) return fail(fmt::format("{} cannot be read", file.string()));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  if (result.is_discarded()) return fail(fmt::format("{} is not JSON", file.string()));
  const nlohmann::json* const entry = application_of(result, application);
  if (entry == nullptr || !entry->contains("timeline") || !(*entry)["timeline"].is_array()) {
    return fail(fmt::format("{} has no timeline of an application {}", file.string(), application));
  }
  std::vector<sim::RecordedInterval> found;
  double begin = 0;
  for (const nlohmann::json& each : (*entry)["timeline"]) {
    const bool has_numbers = each.is_object() && each.contains("t") && each["t"].is_number() &&
                             each.contains("ops_per_s") && each["ops_per_s"].is_number();
    const double end = has_numbers ? each["t"].get<double>() : 0;
    const double requests = has_numbers ? each["ops_per_s"].get<double>() * (end - begin) : 0;
    if (!(end > begin) || end > kLongestSeconds || !(requests >= 0) || requests > kMostRequests) {
      return fail(fmt::format("{}: entry {} of the timeline of {} cannot be", file.string(),
                              found.size(), application));
    }
    found.push_back({.until = std::chrono::nanoseconds(std::llround(end * 1e9)),
                     .requests = static_cast<std::uint64_t>(std::llround(requests))});
    begin = end;
  }
  return found;
}

}  // namespace vpfs::sim_tool
