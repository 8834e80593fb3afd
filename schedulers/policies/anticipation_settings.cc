#include "schedulers/policies/anticipation_settings.h"

#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace vpfs {
namespace {

// "10 %" or "2.5 %", in thousandths.
std::optional<std::uint32_t> read_percent(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::string_view tenth = "0";
  if (const std::size_t point = text.find('.'); point != std::string_view::npos) {
    tenth = text.substr(point + 1);
    text = text.substr(0, point);
    if (tenth.size() != 1) return std::nullopt;
  }
  std::uint32_t value[2] = {};
  const std::string_view parts[2] = {text, tenth};
  for (int i = 0; i < 2; ++i) {
    const char* const end = parts[i].data() + parts[i].size();
    const auto [rest, error] = std::from_chars(parts[i].data(), end, value[i]);
    if (error != std::errc{} || rest != end || value[i] > AnticipationSettings::kMostLoss) {
      return std::nullopt;
    }
  }
  const std::uint32_t thousandths = value[0] * 10 + value[1];
  return thousandths <= AnticipationSettings::kMostLoss ? std::optional(thousandths) : std::nullopt;
}

// Reports what slots cannot be kept beside.
void refuse(ConfigReader& reader, std::string_view key, std::string_view instead,
            const SchedulerSettings& all) {
  if (all.classes.mode != TrafficClasses::Mode::none) {
    reader.report(key, fmt::format("{} with traffic classes: no slot is kept among them", instead));
  } else if (all.auto_depth) {
    reader.report(key, fmt::format("{} with `depth: auto`: a depth is found only while no slot is "
                                   "kept",
                                   instead));
  }
}

void read_max_loss(ConfigReader& reader, SchedulerSettings& all, bool is_chosen) {
  auto& settings = all.own.of<AnticipationSettings>();
  if (std::string loss; reader.get("max_loss", &loss)) {
    const std::optional<std::uint32_t> read = read_percent(loss);
    if (!read) return reader.report("max_loss", "must be 0 % to 50 %, such as 10 % or 2.5 %");
    settings.max_loss = *read;
  } else if (reader.has("max_loss")) {
    return;  // reported
  }
  if (settings.max_loss > 0 && is_chosen) refuse(reader, "max_loss", "must be 0 %", all);
}

}  // namespace

void read_anticipation(ConfigReader& scheduler, SchedulerSettings& all, bool is_chosen) {
  auto& settings = all.own.of<AnticipationSettings>();
  ConfigReader sfq = scheduler.child("sfq");
  if (!sfq.has("anticipation")) {
    // Off.
  } else if (sfq.is_scalar("anticipation")) {
    std::string word;
    sfq.choose("anticipation", &word, {"off", "on"});
    settings.on = word == "on";
    if (settings.on && is_chosen) refuse(sfq, "anticipation", "must be {max_loss: 0 %}", all);
  } else {
    settings.on = true;
    ConfigReader reader = sfq.child("anticipation");
    read_max_loss(reader, all, is_chosen);
  }
  if (settings.on && !is_chosen) {
    sfq.report("anticipation", "would be ignored: only the policy sfq has it");
  }
  sfq.suggest("max_loss", "anticipation.max_loss");
  scheduler.suggest("anticipation", "sfq.anticipation");
}

std::string summary_of_anticipation(const SchedulerSettings& all) {
  const auto settings = all.own.of<AnticipationSettings>();
  if (!settings.on) return "";
  if (settings.max_loss == 0) return "applications that pause for a moment keep their claim";
  return fmt::format(
      "slots are kept for applications that come back soon; it costs {}.{} % at most",
      settings.max_loss / 10, settings.max_loss % 10);
}

}  // namespace vpfs
