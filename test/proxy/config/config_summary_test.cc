#include "proxy/config/config_summary.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::proxy {
namespace {

using ::testing::HasSubstr;

std::string summary_of(const std::string& text) {
  ConfigErrors errors("p.yaml");
  const Config config = parse_config(text, errors);
  EXPECT_EQ(errors.to_string(), "");
  return to_summary(config);
}

TEST(ConfigSummary, SaysWhereItListensHowItSchedulesAndWhatEachGets) {
  const std::string text = summary_of(
      "proxy: {listen: '0.0.0.0:4334', upstream: 'stor0:3334', workers: 2, status_file: s.json}\n"
      "timeouts: {hold: 30 s}\n"
      "scheduler: {policy: sfq, depth: {requests: 8, bytes: 4 MiB}, cost: {per_request: 16 KiB},\n"
      "            classes: {mode: strict, max_starvation: 1 s, names: [{name: fast}, {name: "
      "slow}]}}\n"
      "virtual_pfs:\n"
      "  simulation: {weight: 2, rate: 50 MiB/s, min: 10 MiB/s}\n"
      "  'job-{jobid}': {}\n"
      "rules:\n"
      "  - {match: {client: [10.0.0.0/8, 11.0.0.1], op: read}, virtual_pfs: simulation, class: "
      "fast}\n"
      "  - {match: {hint: {jobid: '*'}}, virtual_pfs: 'job-{jobid}'}\n");
  EXPECT_EQ(
      text,
      "  listens at 0.0.0.0:4334 for the orangefs data server at stor0:3334\n"
      "  2 workers, status in s.json every 5 s, log level info\n"
      "  at most 10000 clients; a request is held for 30 s at most; an I/O without progress "
      "gives its slot back after 1 min\n"
      "  policy sfq, 8 requests at the data server at once, 4 MiB of cost\n"
      "  a request costs 16 KiB + bytes x 1 (reads), x 1 (writes)\n"
      "  traffic classes, the first with something to send goes first: fast, slow; none waits "
      "more than 1 s\n"
      "  virtual PFSes:\n"
      "    simulation   weight 2, at least 10 MiB/s, at most 50 MiB/s (bursts of 3 MiB)\n"
      "    job-{jobid}  weight 1, one for each\n"
      "    default      weight 1\n"
      "  rules, of which the first that matches decides:\n"
      "    client 10.0.0.0/8 or 11.0.0.1 and reads  -> simulation (class fast)\n"
      "    hint jobid=*                             -> job-{jobid} (class slow)\n"
      "    what no rule matches                     -> default (class slow)\n");
}

TEST(ConfigSummary, SaysWhatAPolicyCountsOn) {
  const std::string proxy = "proxy: {listen: 'a:1', upstream: 'b:1'}\n";
  EXPECT_THAT(summary_of(proxy + "scheduler: {policy: edf, edf: {capacity: 400 MiB/s}}\n"
                                 "virtual_pfs: {a: {latency: 1 s}, b: {finish: {bytes: 1 GiB, "
                                 "within: 1 h}}}\n"),
              AllOf(HasSubstr("promises count on 400 MiB/s"), HasSubstr("answers in 1 s"),
                    HasSubstr("1 GiB within 1 h")));
  EXPECT_THAT(summary_of(proxy + "scheduler: {policy: adaptbf}\nvirtual_pfs: {a: {nodes: 3}}\n"),
              AllOf(HasSubstr("capacity of 10 MiB/s to 1 TiB/s, measured"), HasSubstr("nodes 3")));
  EXPECT_THAT(
      summary_of(proxy + "scheduler: {policy: tbf, depth: auto}\n"
                         "virtual_pfs: {a: {operations: 7, rank: 2}}\n"),
      AllOf(HasSubstr("as keep it busy"), HasSubstr("at most 7 requests/s"), HasSubstr("rank 2")));
}

TEST(ConfigSummary, SaysWhatARuleReallyAsksFor) {
  const std::string text = summary_of(
      "proxy: {listen: '[::]:9003', upstream: original, protocol: beegfs}\n"
      "scheduler: {per_target: true}\n"
      "virtual_pfs: {'user-{uid}': {}}\n"
      "rules: [{match: {owner: [1, 2], target: 3}, virtual_pfs: default},\n"
      "        {virtual_pfs: 'user-{uid}'}, {virtual_pfs: default}]\n");
  EXPECT_THAT(text, HasSubstr("at the port that each client was redirected from\n"));
  EXPECT_THAT(text, HasSubstr("for each storage target\n"));
  EXPECT_THAT(text, HasSubstr("    target 3 and owner 1 or 2  -> default\n"
                              "    known uid                  -> user-{uid}\n"
                              "    everything                 -> default\n"));
}

}  // namespace
}  // namespace vpfs::proxy
