// `scheduler.sfq.anticipation` of a proxy's configuration.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "schedulers/policies/anticipation_settings.h"
#include "schedulers/policies/registry.h"
#include "test/proxy/config_text.h"

namespace vpfs::proxy {
namespace {

std::string with_scheduler(const std::string& scheduler) {
  return kMinimal + ("scheduler: " + scheduler + "\n");
}

// What `scheduler: {sfq: {anticipation: ...}, ...}` is told.
std::string error_of_anticipation(const std::string& value, const std::string& beside = "") {
  return errors_of(with_scheduler("\n  sfq:\n    anticipation: " + value + "\n  " + beside));
}

TEST(AnticipationConfig, AnticipationIsOffOnOrAMappingWithItsLoss) {
  const auto settings_of = [](const std::string& value) {
    ConfigErrors errors("p.yaml");
    const Config config =
        parse_config(with_scheduler("{sfq: {anticipation: " + value + "}}"), errors);
    EXPECT_EQ(errors.to_string(), "") << value;
    return config.scheduler.own.of<AnticipationSettings>();
  };
  using Settings = AnticipationSettings;
  EXPECT_EQ(settings_of("off"), (Settings{.on = false}));
  EXPECT_EQ(settings_of("on"), (Settings{.on = true, .max_loss = 100}));
  EXPECT_EQ(settings_of("{max_loss: 0 %}"), (Settings{.on = true, .max_loss = 0}));
  EXPECT_EQ(settings_of("{max_loss: 2.5%}"), (Settings{.on = true, .max_loss = 25}));
  EXPECT_EQ(settings_of("{max_loss: 50 %}"), (Settings{.on = true, .max_loss = 500}));
}

TEST(AnticipationConfig, AMistakeAboutAnticipationIsToldOnceWithItsPlace) {
  const std::string place = "p.yaml:4: scheduler.sfq.anticipation";
  for (const char* value : {"maybe", "10 %", "''"}) {
    const std::string error = error_of_anticipation(value);
    EXPECT_EQ(error.find(place + ": "), 0U) << value << ": " << error;
    EXPECT_NE(error.find("off, on"), std::string::npos) << value << ": " << error;
    EXPECT_EQ(std::ranges::count(error, '\n'), 1) << error;
  }
  EXPECT_EQ(error_of_anticipation("[on]"), place + ": must be a mapping (key: value)\n");
  for (const char* loss : {"10", "0.1", "-1 %", "50.1 %", "51 %", "5 ms", "2.55 %", "ten %", "'%'",
                           ". %", "5. %", "4294967297 %", "1e1 %", "0x5 %", "''"}) {
    for (const char* beside : {"", "depth: auto"}) {
      EXPECT_EQ(error_of_anticipation(std::string("{max_loss: ") + loss + "}", beside),
                place + ".max_loss: must be 0 % to 50 %, such as 10 % or 2.5 %\n")
          << loss;
    }
  }
  EXPECT_EQ(error_of_anticipation("{max_los: 5 %}"),
            place + ".max_los: unknown key; did you mean \"max_loss\"?\n");
  EXPECT_NE(error_of_anticipation("{max_loss: [5 %]}").find(place + ".max_loss: "),
            std::string::npos);
  EXPECT_NE(errors_of(with_scheduler("{sfq: {max_loss: 5 %}}")).find("\"anticipation.max_loss\""),
            std::string::npos);
  EXPECT_NE(errors_of(with_scheduler("{anticipation: on}")).find("\"sfq.anticipation\""),
            std::string::npos);
}

TEST(AnticipationConfig, AnticipationIsRefusedWhereItWouldDoNothingOrHarm) {
  const std::string place = "p.yaml:4: scheduler.sfq.anticipation";
  for (const std::string_view policy : scheduler_names()) {
    for (const char* value : {"off", "on", "{max_loss: 0 %}"}) {
      // Beside a depth that finds itself there is no second mistake.
      const std::string error = error_of_anticipation(
          value, "policy: " + std::string(policy) + (policy == "sfq" ? "" : "\n  depth: auto"));
      const bool is_fine = policy == "sfq" || value == std::string_view("off");
      const std::string ignored = place + ": would be ignored: only the policy sfq has it\n";
      EXPECT_EQ(error, is_fine ? "" : ignored) << policy << " " << value;
    }
  }
  EXPECT_NE(error_of_anticipation("on", "policy: lifo").find("p.yaml:5: scheduler.policy: "),
            std::string::npos);
  EXPECT_EQ(error_of_anticipation("on", "policy: lifo").find("anticipation"), std::string::npos);

  const std::string classes = "classes: {mode: strict, names: [{name: a}, {name: b}]}";
  EXPECT_EQ(error_of_anticipation("on", "depth: auto"),
            place +
                ": must be {max_loss: 0 %} with `depth: auto`: a depth is found only while no "
                "slot is kept\n");
  EXPECT_EQ(error_of_anticipation("{max_loss: 5 %}", "depth: {requests: auto}"),
            place +
                ".max_loss: must be 0 % with `depth: auto`: a depth is found only while no "
                "slot is kept\n");
  EXPECT_EQ(error_of_anticipation("{}", classes),
            place + ".max_loss: must be 0 % with traffic classes: no slot is kept among them\n");
  EXPECT_EQ(error_of_anticipation("{max_loss: 5 %}", classes),
            place + ".max_loss: must be 0 % with traffic classes: no slot is kept among them\n");
  for (const std::string& beside : {std::string("depth: auto"), classes}) {
    EXPECT_EQ(error_of_anticipation("{max_loss: 0 %}", beside), "") << beside;
    EXPECT_EQ(error_of_anticipation("off", beside), "") << beside;
  }
}

}  // namespace
}  // namespace vpfs::proxy
