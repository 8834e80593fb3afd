#include "control/wire/command_text.h"

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

TEST(CommandText, IsWhatAnAdministratorWouldType) {
  Envelope request;
  Rule& rule = *request.mutable_rule();
  rule.set_action(Rule::START);
  rule.set_name("backup");
  rule.set_condition("client={10.0.0.9 10.0.0.10}");
  rule.add_words("rate=100MiB/s");
  EXPECT_EQ(command_text(request), "rule start backup 'client={10.0.0.9 10.0.0.10}' rate=100MiB/s");
  rule.Clear();
  rule.set_action(Rule::APPLY);
  rule.set_file_name("rules.yaml");
  rule.set_file("secret");
  rule.set_dry_run(true);
  rule.set_confirm_seconds(60);
  EXPECT_EQ(command_text(request), "rule apply 'rules.yaml (6 bytes)' --dry-run --confirm 60");
  rule.Clear();
  rule.set_action(Rule::ROLLBACK);
  rule.set_version(7);
  EXPECT_EQ(command_text(request), "rule rollback 7");

  Job& job = *request.mutable_job();
  job.set_action(Job::START);
  job.set_jobid("4711");
  job.set_nodes(8);
  job.add_uids(1001);
  job.add_clients("10.0.0.1");
  job.add_clients("10.0.0.2");
  EXPECT_EQ(command_text(request),
            "job start 4711 --nodes 8 --uid 1001 --clients 10.0.0.1,10.0.0.2");

  request.mutable_bypass()->set_on(true);
  request.mutable_bypass()->set_for_seconds(600);
  EXPECT_EQ(command_text(request), "bypass on --for 600");

  Envelope forward;
  *forward.mutable_forward()->mutable_request() = request;
  EXPECT_EQ(command_text(forward), "forward bypass on --for 600");
  forward.mutable_forward()->add_stages("ds1");
  forward.mutable_forward()->add_stages("ds2");
  EXPECT_EQ(command_text(forward), "forward bypass on --for 600 --stage ds1,ds2");
  request.mutable_site()->set_origin("site");
  request.mutable_site()->add_rules();
  EXPECT_EQ(command_text(request), "site site '(1 rules, 0 jobs)'");
  request.mutable_reload();
  EXPECT_EQ(command_text(request), "reload");
}

TEST(CommandText, HasABoundAndWholeCharacters) {
  Envelope request;
  request.mutable_rule()->set_action(Rule::START);
  std::string name;
  for (int i = 0; i < 100000; ++i) name += "\xc3\xa4";
  request.mutable_rule()->set_name(name);
  for (int i = 0; i < 100000; ++i) request.mutable_rule()->add_words("weight=4");
  const std::string text = command_text(request);
  EXPECT_LE(text.size(), 4100U);
  EXPECT_TRUE(text.ends_with("\xc3\xa4..."));
}

}  // namespace
}  // namespace vpfs::control
