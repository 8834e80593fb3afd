#include "test/stage/book/plain_rules.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/units.h"
#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

int rules_read = 0;

}  // namespace

int plain_rules_read() {
  return rules_read;
}

std::expected<ParsedRule, std::vector<RuleProblem>> plain_rule(const RuleText& text,
                                                               const Config& context) {
  ++rules_read;
  std::vector<RuleProblem> problems;
  ParsedRule parsed;
  parsed.rule.name = text.name;
  parsed.rule.text = text;
  parsed.rule.virtual_pfs = text.name;
  VirtualPfsConfig share = {.name = text.name};
  if (text.condition == "wrong") problems.push_back({"COND:3", "a mistake"});
  const bool is_default = text.name == "default";  // a share alone
  bool has_share_words = false;
  bool sends = false;
  const auto declared = [&](std::string_view name) {
    return std::ranges::find(context.virtual_pfs, name, &VirtualPfsConfig::name) !=
           context.virtual_pfs.end();
  };
  for (const std::string& word : text.words) {
    const std::string_view key = word_key(word);
    const std::string value(word_value(word));
    if (is_default && (key == "vpfs" || key == "mode")) {
      problems.push_back({std::string(key), "is not a word of a share"});
      continue;
    }
    if (key == "vpfs") {
      sends = true;
      parsed.rule.virtual_pfs = value;
      if (!declared(value)) problems.push_back({"vpfs", "'" + value + "' is not declared"});
      continue;
    }
    if (key == "mode") {
      if (value == "shadow") {
        parsed.rule.mode = RuleMode::shadow;
      } else {
        problems.push_back({"mode", "must be shadow"});
      }
      continue;
    }
    if (key == "for") {
      const Result<Duration> lasts = parse_duration(value);
      if (lasts) {
        parsed.lasts = *lasts;
      } else {
        problems.push_back({"for", lasts.error().message});
      }
      continue;
    }
    has_share_words = true;
    Result<BytesPerSecond> rate = parse_rate(value);
    Result<Bytes> bytes = parse_bytes(value);
    if (key == "weight" && std::atoi(value.c_str()) > 0) {
      share.share.weight = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    } else if (key == "rate" && rate) {
      share.share.rate = *rate;
    } else if (key == "min" && rate) {
      share.share.min = *rate;
    } else if (key == "burst" && bytes) {
      share.share.burst = *bytes;
    } else if (key == "iops" && std::atoi(value.c_str()) > 0) {
      share.share.operations = static_cast<std::uint64_t>(std::atoi(value.c_str()));
    } else {
      problems.push_back({std::string(key), "'" + value + "' is wrong"});
    }
  }
  if (sends && has_share_words) problems.push_back({"vpfs", "has no words of a share"});
  if (!sends && !is_default && declared(text.name))
    problems.push_back({"NAME", "is declared already"});
  if (!problems.empty()) return std::unexpected(problems);
  // "operations" is written as "iops", as the shortest form has it.
  for (std::string& word : parsed.rule.text.words) {
    if (word.starts_with("operations=")) word = "iops=" + std::string(word_value(word));
  }
  if (!sends) parsed.declares = share;
  return parsed;
}

}  // namespace vpfs::stage
