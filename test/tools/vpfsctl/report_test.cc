#include "tools/vpfsctl/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/words/printable.h"
#include "control/words/table.h"
#include "test/support/time_zone.h"

namespace vpfs::ctl {
namespace {

using words::printable;
using words::shortened;

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::int64_t kNoon = 1'795'348'800;  // 2026-11-22 12:00:00 UTC

class Reports : public ::testing::Test {
 protected:
  static std::string output_of(const Command& command, const control::Envelope& reply) {
    return report(command, std::vector{make_answer("s0", reply)}, "").output;
  }

 private:
  test::TimeZone zone_{"UTC"};
};

TEST_F(Reports, RulesAreInColumns) {
  control::Envelope reply;
  auto* dd = reply.mutable_rule_reply()->add_rules();
  dd->set_name("dd");
  dd->set_origin("administrator");
  dd->set_hits(1234);
  dd->set_virtual_pfs_made(2);
  dd->set_until_at(kNoon);
  dd->set_condition("jobid={dd.*}");
  dd->add_words("rate=500MiB/s");
  dd->add_words("weight=4");
  auto* shadow = reply.mutable_rule_reply()->add_rules();
  shadow->set_name("backup");
  shadow->set_origin("file");
  shadow->set_condition("client={10.0.0.0/8}");
  shadow->add_words("mode=shadow");
  shadow->set_shadow(true);
  shadow->mutable_would_hold()->set_requests(12);
  shadow->mutable_would_hold()->set_bytes(3 << 20);
  shadow->mutable_would_hold()->set_seconds_us(2'500'000);
  shadow->set_hidden_by("dd");
  reply.mutable_rule_reply()->add_rules()->set_name("default");
  EXPECT_EQ(output_of({.verb = Verb::rule_list}, reply),
            "NAME     ORIGIN         HITS  VPFS MADE  UNTIL                COND                 "
            "WORDS                   NOTE\n"
            "dd       administrator  1234          2  2026-11-22 12:00:00  jobid={dd.*}         "
            "rate=500MiB/s weight=4  -\n"
            "backup   file              0          0  -                    client={10.0.0.0/8}  "
            "mode=shadow             "
            "hidden by dd; shadow: would have held 12 requests, 3 MiB, for 2.5 s\n"
            "default  -                 0          0  -                    -                    -  "
            "                     -\n");
}

TEST_F(Reports, ADryRunShowsTheDifferencesOnly) {
  control::Envelope reply;
  const auto add = [&reply](const char* kind, const char* before, const char* after) {
    auto* each = reply.mutable_rule_reply()->add_differences();
    each->set_kind(kind);
    each->set_before(before);
    each->set_after(after);
  };
  const Command dry = {.verb = Verb::rule_apply, .dry_run = true};
  reply.mutable_rule_reply();
  EXPECT_EQ(output_of(dry, reply), "nothing would change\n");
  add("added", "", "a uid={1} weight=2");
  add("removed", "b uid={2}", "");
  add("changed", "c uid={3} weight=1", "c uid={3} weight=2");
  add("moved", "", "d uid={4}");
  EXPECT_EQ(output_of(dry, reply),
            "+ a uid={1} weight=2\n- b uid={2}\n~ c uid={3} weight=1\n  c uid={3} weight=2\n"
            "> d uid={4}\n");
}

TEST_F(Reports, AnAppliedSetSaysUntilWhenItWaits) {
  control::Envelope reply;
  reply.mutable_rule_reply()->set_text("applied 3 rules");
  reply.mutable_rule_reply()->set_confirm_by_at(kNoon);
  EXPECT_EQ(output_of({.verb = Verb::rule_apply}, reply),
            "applied 3 rules\n"
            "waits for `vpfsctl rule confirm` until 2026-11-22 12:00:00, then it is rolled back\n");
}

TEST_F(Reports, HistoryMarksTheVersionInForce) {
  control::Envelope reply;
  reply.mutable_rule_reply()->set_version(2);
  for (const std::uint64_t version : {1U, 2U}) {
    auto* entry = reply.mutable_rule_reply()->add_history();
    entry->set_version(version);
    entry->set_at(kNoon);
    entry->set_who("alice (uid 1001)");
    entry->set_command("rule start dd uid=1");
  }
  auto* difference = reply.mutable_rule_reply()->mutable_history(1)->add_differences();
  difference->set_kind("added");
  difference->set_after("dd uid=1");
  EXPECT_EQ(output_of({.verb = Verb::rule_history}, reply),
            "1  2026-11-22 12:00:00  alice (uid 1001)  rule start dd uid=1\n"
            "2 *  2026-11-22 12:00:00  alice (uid 1001)  rule start dd uid=1\n"
            "    + dd uid=1\n");
}

TEST_F(Reports, JobsAreInColumns) {
  control::Envelope reply;
  auto* job = reply.mutable_job_reply()->add_jobs();
  job->set_jobid("4711");
  job->set_nodes(5);
  job->add_uids(1001);
  job->add_clients("n[1-4]");
  job->add_clients("n7");
  job->set_since_at(kNoon);
  job->set_origin("job");
  EXPECT_EQ(
      output_of({.verb = Verb::job_list}, reply),
      "JOBID  NODES  UID   GID  ACCOUNT  CLIENTS    SINCE                UNTIL  ORIGIN  VPFS\n"
      "4711       5  1001  -    -        n[1-4],n7  2026-11-22 12:00:00  -      job     -\n");
}

TEST_F(Reports, ClientsAreListedWithWhatTheyHaveShown) {
  control::Envelope reply;
  auto* client = reply.mutable_why_reply()->add_clients();
  client->set_address("10.0.0.5");
  client->set_connections(2);
  auto* seen = client->add_seen();
  seen->set_virtual_pfs("job-dd.0");
  seen->set_rule("dd");
  seen->set_class_("batch");
  seen->set_jobid("dd.0");
  seen->set_job_from_registration(true);
  seen->set_uid(0);
  seen->set_kind("read");
  seen->set_requests(12);
  seen->set_note("its uid is root's");
  reply.mutable_why_reply()->add_clients()->set_address("10.0.0.6");
  EXPECT_EQ(output_of({.verb = Verb::who, .name = "dd.0"}, reply),
            "CLIENT    CONNECTIONS  RULE  VPFS      CLASS  REQUESTS  LAST  SHOWS                   "
            "       NOTE\n"
            "10.0.0.5            2  dd    job-dd.0  batch        12  read  jobid=dd.0 (registered) "
            "uid=0  its uid is root's\n"
            "10.0.0.6            0  -     -         -             0  -     -                       "
            "       has sent no I/O\n");
}

TEST_F(Reports, TheNumberThatAMountDoesNotListIsShown) {
  control::Envelope reply;
  control::Client& client = *reply.mutable_why_reply()->add_clients();
  client.set_address("/mnt/shared");
  client.set_not_listed(3);
  client.set_requests_not_listed(70);
  EXPECT_EQ(output_of({.verb = Verb::who, .name = "bob"}, reply),
            "no client that has shown \"bob\" is connected\n"
            "/mnt/shared: and 3 more that are not listed, with 70 requests\n");
}

TEST_F(Reports, WithoutAClientThatFitsAMessageSaysSo) {
  control::Envelope reply;
  reply.mutable_why_reply();
  EXPECT_EQ(output_of({.verb = Verb::who}, reply), "no client is in default\n");
  EXPECT_EQ(output_of({.verb = Verb::who, .name = "bob"}, reply),
            "no client that has shown \"bob\" is connected\n");
}

TEST_F(Reports, StatusIsLoudAboutWhatIsUnusual) {
  control::Envelope reply;
  auto* stats = reply.mutable_stats_reply();
  stats->set_name("s0");
  stats->set_upstream("10.0.0.1:3334");
  stats->set_started_at(kNoon);
  stats->set_policy("sfq");
  stats->set_depth_requests(16);
  stats->set_depth_bytes(16 << 20);
  stats->set_outstanding(3);
  stats->set_queued(40);
  stats->set_connections(7);
  stats->add_virtual_pfs();
  stats->add_rules()->set_origin("file");
  stats->add_rules()->set_problem("its virtual PFS was removed");
  EXPECT_EQ(output_of({.verb = Verb::status}, reply),
            "proxy        s0\n"
            "upstream     10.0.0.1:3334\n"
            "since        2026-11-22 12:00:00\n"
            "policy       sfq, depth 16 requests and 16 MiB\n"
            "requests     3 outstanding, 40 queued\n"
            "connections  7\n"
            "virtual PFS  1\n"
            "rules        2, 1 of them live, 1 NOT IN FORCE\n");
  stats->set_bypass(true);
  stats->set_draining(true);
  EXPECT_THAT(output_of({.verb = Verb::status}, reply),
              ::testing::StartsWith(
                  "! BYPASS IS ON until `vpfsctl bypass off`: everything is forwarded at once, "
                  "nothing is held\n! IS DRAINING: it accepts no clients\n"));
}

TEST_F(Reports, SeveralProxiesAreToldApart) {
  control::Envelope ack;
  ack.mutable_ack()->set_text("reloaded: 1 rule more");
  ack.mutable_ack()->add_warnings("b can never match");
  const std::vector<ProxyAnswer> answers = {
      make_answer("s0", ack), unreachable("s1", "timeout", "no answer"), make_answer("s2", ack)};
  const Report told = report({.verb = Verb::reload}, answers, "");
  EXPECT_EQ(told.output, "s0: reloaded: 1 rule more\ns2: reloaded: 1 rule more\n");
  EXPECT_EQ(told.errors,
            "vpfsctl: s0: warning: b can never match\n"
            "vpfsctl: s1: unreachable: no answer\n"
            "vpfsctl: s2: warning: b can never match\n");
}

TEST_F(Reports, TablesOfSeveralProxiesHaveTitles) {
  control::Envelope reply;
  reply.mutable_rule_reply()->add_rules()->set_name("default");
  const std::vector<ProxyAnswer> answers = {make_answer("s0", reply), make_answer("s1", reply)};
  const std::string output = report({.verb = Verb::rule_list}, answers, "").output;
  EXPECT_THAT(output, ::testing::StartsWith("s0:\nNAME "));
  EXPECT_THAT(output, HasSubstr("\ns1:\nNAME "));
}

TEST_F(Reports, ADeedWithoutWordsIsDone) {
  control::Envelope reply;
  reply.mutable_ack();
  EXPECT_EQ(output_of({.verb = Verb::drain}, reply), "done\n");
}

TEST(Printable, KeepsTextAndEscapesTheRest) {
  EXPECT_EQ(printable("a b \xc3\xbc"), "a b \xc3\xbc");
  EXPECT_EQ(printable("\x1b\x7f\xff\xc2\x9b"), "\\x1B\\x7F\\xFF\\xC2\\x9B");
  EXPECT_EQ(printable("\xe0\x80\x80\xed\xa0\x80"), "\\xE0\\x80\\x80\\xED\\xA0\\x80");
  EXPECT_EQ(printable("\xe2\x82"), "\\xE2\\x82");
}

TEST(Printable, ShortensAtCodePoints) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 3), "ab~");
  EXPECT_EQ(shortened("\xc3\xbc\xc3\xbc\xc3\xbc", 2), "\xc3\xbc~");
  EXPECT_EQ(shortened("abc", 0), "");
  EXPECT_EQ(shortened("abc", 1), "~");
}

TEST_F(Reports, TheLedgerHasARowForEachEntry) {
  control::Envelope reply;
  control::LedgerEntry& entry = *reply.mutable_ledger_reply()->add_entries();
  entry.set_begin_at(kNoon);
  entry.set_end_at(kNoon + 60);
  entry.set_name("job-1");
  entry.set_jobid("1");
  entry.set_cause(control::LedgerEntry::LIMIT);
  entry.set_rate(4 << 20);
  entry.set_rule("jobs");
  entry.set_held_us(30'500'000);
  entry.set_bytes(240 << 20);
  entry.set_operations(240);
  entry.set_longest_wait_us(250'000);
  control::LedgerEntry& other = *reply.mutable_ledger_reply()->add_entries();
  other.set_begin_at(kNoon);
  other.set_name("job-2");
  other.set_cause(control::LedgerEntry::TRAFFIC_CLASS);
  other.set_goes_on(true);
  EXPECT_EQ(output_of({.verb = Verb::ledger}, reply),
            "BEGIN                END                  NAME   JOB  HELD BY        RULE    HELD   "
            "   MOVED  REQUESTS  LONGEST WAIT\n"
            "2026-11-22 12:00:00  2026-11-22 12:01:00  job-1  1    limit 4 MiB/s  jobs  30.5 s  "
            "240.0 MiB       240         0.2 s\n"
            "2026-11-22 12:00:00  goes on              job-2  -    other classes  -      0.0 s  "
            "  0.0 KiB         0         0.0 s\n");
  control::LedgerEntry& lender = *reply.mutable_ledger_reply()->add_entries();
  lender.set_name("job-1");
  lender.set_jobid("1");
  lender.set_account("physics");
  lender.set_cause(control::LedgerEntry::LOANS);
  lender.set_lent_cost(30 << 20);
  lender.set_borrowed_cost(10 << 20);
  *reply.mutable_ledger_reply()->add_entries() = lender;
  control::LedgerEntry& borrower = *reply.mutable_ledger_reply()->add_entries();
  borrower = lender;
  borrower.set_name("job-2");
  borrower.set_jobid("2");
  borrower.set_lent_cost(0);
  EXPECT_THAT(output_of({.verb = Verb::ledger}, reply),
              EndsWith("  0.0 KiB         0         0.0 s\n"
                       "\n"
                       "NAME   JOB      LENT  BORROWED    BALANCE\n"
                       "job-1  1    60.0 MiB  20.0 MiB   40.0 MiB\n"
                       "job-2  2     0.0 KiB  10.0 MiB  -10.0 MiB\n"
                       "\n"
                       "ACCOUNT      LENT  BORROWED   BALANCE\n"
                       "physics  60.0 MiB  30.0 MiB  30.0 MiB\n"));
  control::Envelope nothing;
  nothing.mutable_ledger_reply();
  EXPECT_EQ(output_of({.verb = Verb::ledger}, nothing),
            "nothing was held by a limit or a traffic class\n");
}

}  // namespace
}  // namespace vpfs::ctl
