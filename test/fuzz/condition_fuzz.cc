#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/config/rule_text.h"
#include "stage/rules/condition.h"
#include "stage/rules/rule_checks.h"
#include "test/fuzz/require.h"

namespace vpfs {
namespace {

using stage::RuleText;
using test::require;

class SomeNames final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return name.size() < 8 ? std::optional(1000U) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override {
    return user(name);
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    if (host.size() > 8) return {};
    return {"10.0.0.1", "fd00::1"};
  }
};

void check_condition(std::string_view text) {
  const auto condition = stage::parse_condition(text);
  if (!condition) {
    require(condition.error().at <= text.size(), "a mistake behind the end of the text");
    return;
  }
  const std::string printed = stage::to_string(*condition);
  const auto again = stage::parse_condition(printed);
  require(again && *again == *condition, "a printed condition is read as another one: " + printed);
}

void check_rule(const RuleText& text) {
  const SomeNames names;
  stage::Config config;
  config.source = "the fuzzer";
  config.shown = {Attribute::hint,   Attribute::file_system, Attribute::uid,      Attribute::node,
                  Attribute::target, Attribute::owner,       Attribute::directory};
  config.names = &names;
  config.virtual_pfs = {{.name = "shared", .share = {}}};
  const auto parsed = stage::parse_rule(text, config);
  if (!parsed) {
    require(!parsed.error().empty(), "refused without a reason");
    for (const stage::RuleProblem& each : parsed.error()) {
      require(!each.text.empty() && each.text.find('\n') == std::string::npos,
              "a reason that is not one line");
    }
    return;
  }
  for (const stage::Conditions& each : parsed->rule.any_of) {
    require(each.clients.size() <= 65'536 && each.uids.size() <= 65'536,
            "a small text stands for too much");
  }
  const auto again = stage::parse_rule(parsed->rule.text, config);
  require(again && again->rule == parsed->rule && again->declares == parsed->declares &&
              again->lasts == parsed->lasts,
          "the text of a rule makes another rule");
  if (text.name != "default") (void)stage::hiding_rules({parsed->rule, parsed->rule});
}

}  // namespace
}  // namespace vpfs

// A condition; on further lines the name and the words of a rule.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  constexpr std::size_t kMostBytes = 4096;
  std::string_view text(reinterpret_cast<const char*>(data), std::min(size, kMostBytes));
  std::vector<std::string> lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  check_condition(lines.front());
  RuleText rule = {
      .name = lines.size() > 1 ? lines[1] : "x", .condition = lines.front(), .words = {}};
  if (lines.size() > 2) rule.words.assign(lines.begin() + 2, lines.end());
  check_rule(rule);
  return 0;
}
