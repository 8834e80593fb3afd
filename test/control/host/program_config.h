#pragma once

#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include "control/host/config.h"
#include "stage/config/job_config.h"
#include "stage/config/rule_config.h"
#include "stage/config/scheduler_config.h"
#include "stage/config/share_config.h"

namespace vpfs::test {

inline constexpr control::ProgramName kProgramName = {.program = "vpfs-test", .role = "program"};

// The configuration of a program that is nothing but a stage.
struct ProgramConfig : control::HostConfig {
  std::uint64_t threads = 1;
};

[[nodiscard]] inline ProgramConfig parse_program(std::string_view text, ConfigErrors& errors,
                                                 const ProgramConfig* running = nullptr,
                                                 const stage::Names* names = nullptr) {
  ProgramConfig config;
  config.names = names;
  config.source = "the test";
  config.shown = {Attribute::hint, Attribute::jobid, Attribute::metadata};
  ConfigReader file(text, errors);
  ConfigReader own = file.child("program");
  own.get("threads", &config.threads, 1, 100);
  control::read_process(own, config, kProgramName);
  own.finish();
  if (running != nullptr) {
    control::require_same(own, "threads", config.threads == running->threads, kProgramName);
  }
  ConfigReader limits = file.child("limits");
  stage::read_stage_limits(limits, config);
  control::read_control(file, config, running, kProgramName);
  stage::read_scheduler(file.child("scheduler"), config, running);
  stage::read_shares(file, config);
  stage::read_jobs(file, config);
  stage::read_rules(file, config);
  return config;
}

// The configuration of a text without mistakes.
[[nodiscard]] inline ProgramConfig good_program(std::string_view text) {
  ConfigErrors errors("p.yaml");
  ProgramConfig config = parse_program(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  return config;
}

}  // namespace vpfs::test
