#include "proxy/settings.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

Config config_of(const std::string& rest) {
  ConfigErrors errors("p.yaml");
  Config config = parse_config(
      "proxy: {listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}\n"
      "virtual_pfs: {a: {}}\n" +
          rest,
      errors);
  EXPECT_EQ(errors.to_string(), "");
  return config;
}

TEST(Settings, WhatDidNotChangeIsShared) {
  const std::string rules = "rules: [{match: {jobid: '*'}, virtual_pfs: a}]\n";
  const std::string job = "registered_jobs: [{jobid: j, client: 10.0.0.1}]\n";
  const Settings first(config_of(rules + job));
  const Settings other_jobs(config_of(rules), &first);
  EXPECT_EQ(other_jobs.classifier.rules(), first.classifier.rules());
  EXPECT_NE(other_jobs.jobs, first.jobs);
  const Settings other_rules(config_of(job), &first);
  EXPECT_NE(other_rules.classifier.rules(), first.classifier.rules());
  EXPECT_EQ(other_rules.jobs, first.jobs);
  EXPECT_EQ(first.jobs->size(), 1U);
  EXPECT_EQ(other_jobs.jobs->size(), 0U);
}

}  // namespace
}  // namespace vpfs::proxy
