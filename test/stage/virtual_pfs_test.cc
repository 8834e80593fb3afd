#include "stage/virtual_pfs.h"

#include <gtest/gtest.h>

#include "test/stage/now.h"

namespace vpfs::stage {
namespace {

TEST(VirtualPfsTable, DefaultIsAlwaysThereAndFirst) {
  VirtualPfsTable table({{.name = "a", .share = {.weight = 3}}}, 10, kNow);
  EXPECT_EQ(table[AppId{0}].info->name, "default");
  EXPECT_EQ(table.find_or_make({"default", "default"}, kNow).app, AppId{0});
  EXPECT_EQ(table.find_or_make({"a", "a"}, kNow).app, AppId{1});
  EXPECT_EQ(table[AppId{1}].info->share().weight, 3U);
}

TEST(VirtualPfsTable, ATemplateMakesOneForEachNameWithItsShare) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {.weight = 5}}}, 10, kNow);
  const auto one = table.find_or_make({"job-1", "job-{jobid}"}, kNow);
  const auto two = table.find_or_make({"job-2", "job-{jobid}"}, kNow);
  const auto again = table.find_or_make({"job-1", "job-{jobid}"}, kNow);
  EXPECT_NE(one.app, two.app);
  EXPECT_EQ(again.app, one.app);
  EXPECT_TRUE(one.made && two.made);
  EXPECT_FALSE(again.made);
  EXPECT_EQ(table[two.app].info->share().weight, 5U);
}

TEST(VirtualPfsTable, BeyondTheLimitNewNamesAreDefault) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {}}}, 1, kNow);
  EXPECT_NE(table.find_or_make({"job-1", "job-{jobid}"}, kNow).app, AppId{0});
  const std::size_t before = table.size();
  AppId last{};
  for (int i = 2; i < 10; ++i) {
    last = table.find_or_make({"job-" + std::to_string(i), "job-{jobid}"}, kNow).app;
  }
  EXPECT_EQ(last, AppId{0});
  EXPECT_LE(table.size(), before + 1);
  EXPECT_GT(table.refused(), 0U);
}

TEST(VirtualPfsTable, AReloadTellsWhatChangedAndKeepsTheBooks) {
  VirtualPfsTable table({{.name = "a", .share = {.weight = 1}},
                         {.name = "b", .share = {.weight = 2}},
                         {.name = "job-{jobid}", .share = {.weight = 3}}},
                        10, kNow);
  const AppId job = table.find_or_make({"job-1", "job-{jobid}"}, kNow).app;
  table.counters(AppId{1}).done.of(IoKind::read).requests = 17;
  const std::vector<VirtualPfsConfig> next = {{.name = "c", .share = {}},
                                              {.name = "b", .share = {.weight = 2}},
                                              {.name = "job-{jobid}", .share = {.weight = 9}}};
  EXPECT_EQ(table.reconfigure(next, 10, kNow), (std::vector{AppId{1}, job, AppId{4}}));
  EXPECT_TRUE(table[AppId{1}].info->removed);
  EXPECT_FALSE(table[AppId{2}].info->removed);
  EXPECT_EQ(table[job].info->share().weight, 9U);
  EXPECT_EQ(table[AppId{4}].info->name, "c");
  EXPECT_TRUE(table.reconfigure(next, 10, kNow).empty()) << "nothing is new";
  // A caller with the old rules gets the default share.
  EXPECT_EQ(table.find_or_make({"a", "a"}, kNow).app, AppId{0});
  const std::vector<VirtualPfsConfig> back = {{.name = "a", .share = {.weight = 4}}};
  EXPECT_EQ(table.reconfigure(back, 10, kNow), (std::vector{AppId{1}, AppId{2}, job, AppId{4}}));
  EXPECT_FALSE(table[AppId{1}].info->removed);
  EXPECT_EQ(table[AppId{1}].info->share().weight, 4U);
  EXPECT_EQ(table.counters(AppId{1}).done.all().requests, 17U);
}

TEST(VirtualPfsTable, WhatIsRetiredIsForgottenAndItsNumberUsedAgainWithAnotherGeneration) {
  VirtualPfsTable table({{.name = "job-{jobid}", .share = {.weight = 5}}}, 1, kNow);
  const AppId first = table.find_or_make({"job-1", "job-{jobid}"}, kNow).app;
  const VirtualPfsId before = table.id_of(first);
  table.counters(first).done.of(IoKind::read) = {.requests = 3, .bytes = 300};
  table[first].histograms = std::make_unique<Histograms>();
  table[first].histograms->wait.record(std::chrono::milliseconds(2));
  table.retire(first);
  EXPECT_FALSE(table.is_there(before));
  EXPECT_EQ(table.retired().count, 1U);
  EXPECT_EQ(table.retired().counters.done.all().bytes, 300U);
  EXPECT_EQ(table.retired().histograms.wait.count(), 1U);

  const auto second = table.find_or_make({"job-2", "job-{jobid}"}, kNow);
  EXPECT_TRUE(second.made);
  EXPECT_EQ(second.app, first);
  EXPECT_NE(table.id_of(second.app), before);
  EXPECT_EQ(table.counters(second.app).done.all().requests, 0U);
  EXPECT_EQ(table[second.app].info->name, "job-2");
  EXPECT_EQ(table.find_or_make({"job-3", "job-{jobid}"}, kNow).app, AppId{0}) << "one at a time";
}

TEST(VirtualPfsTable, TheAccountIsThatOfItsOneJob) {
  VirtualPfsTable table({{.name = "a", .share = {}}, {.name = "job-{jobid}", .share = {}}}, 1,
                        kNow);
  const auto find = [&](const char* name, const char* declared, const char* jobid,
                        const char* account) {
    return table
        .find_or_make(
            {.virtual_pfs = name, .declared_name = declared, .account = account, .jobid = jobid},
            kNow)
        .app;
  };
  const AppId job = find("job-1", "job-{jobid}", "1", "physics");
  EXPECT_EQ(table.account(job), "physics");
  EXPECT_EQ(table.account(find("a", "a", "2", "")), "");
  EXPECT_EQ(table.account(find("a", "a", "2", "biology")), "biology") << "it was registered later";
  EXPECT_EQ(table.account(find("a", "a", "3", "physics")), "") << "two jobs";
  table.retire(job);
  EXPECT_EQ(find("job-4", "job-{jobid}", "4", ""), job);
  EXPECT_EQ(table.account(job), "");
}

TEST(VirtualPfsTable, ItsJobIdIsTheOneThatAllItsRequestsShow) {
  VirtualPfsTable table({{.name = "a", .share = {}},
                         {.name = "b", .share = {}},
                         {.name = "{uid}-of-{jobid}", .share = {}},
                         {.name = "user-{uid}", .share = {}}},
                        10, kNow);
  const auto find = [&](const char* name, const char* declared, const char* jobid) {
    return table
        .find_or_make({.virtual_pfs = name, .declared_name = declared, .jobid = jobid}, kNow)
        .app;
  };
  const AppId job = find("7-of-17", "{uid}-of-{jobid}", "17");
  EXPECT_EQ(table.jobid(job), "17");
  EXPECT_EQ(table.jobid(AppId{1}), "") << "none was seen";
  const AppId a = find("a", "a", "some-job");
  EXPECT_EQ(table.jobid(find("a", "a", "some-job")), "some-job");
  const AppId b = find("b", "b", "");
  EXPECT_EQ(table.jobid(find("b", "b", "later")), "") << "not all showed it";
  EXPECT_EQ(table.jobid(find("a", "a", "another-job")), "");
  EXPECT_EQ(table.jobid(find("a", "a", "some-job")), "") << "two are not one";
  const AppId user = find("user-7", "user-{uid}", "7");
  EXPECT_EQ(table.jobid(user), "7");
  EXPECT_EQ(table.jobid(find("user-7", "user-{uid}", "8")), "");
  EXPECT_EQ(find("default", "default", "9"), AppId{0});
  EXPECT_EQ(table.jobid(AppId{0}), "");
  EXPECT_EQ(table[a].info->name, "a");
  EXPECT_EQ(table[b].info->name, "b");
}

TEST(VirtualPfsTable, AJobIdSurvivesAReloadAndNotItsVirtualPfs) {
  const std::vector<VirtualPfsConfig> declared = {{.name = "x-{dir}", .share = {}}};
  VirtualPfsTable table(declared, 10, kNow);
  const Classifier::Match match = {
      .virtual_pfs = "x-data", .declared_name = "x-{dir}", .nodes = 4, .jobid = "42"};
  const AppId app = table.find_or_make(match, kNow).app;
  (void)table.reconfigure({{.name = "x-{dir}", .share = {.weight = 3}}}, 10, kNow);
  EXPECT_EQ(table.jobid(app), "42");
  EXPECT_EQ(table[app].info->nodes, 4U);
  table.retire(app);
  EXPECT_EQ(table.find_or_make({.virtual_pfs = "x-y", .declared_name = "x-{dir}"}, kNow).app, app);
  EXPECT_EQ(table.jobid(app), "");
  EXPECT_EQ(table[app].info->nodes, 0U);
}

TEST(VirtualPfsTable, OneOfATemplateHasTheNodesOfItsJobUnlessTheyAreDeclared) {
  VirtualPfsTable table(
      {{.name = "job-{jobid}", .share = {}},
       {.name = "big-{jobid}", .share = {.own = {{.word = "nodes", .value = 1000}}}},
       {.name = "fixed", .share = {}}},
      10, kNow);
  const auto find = [&](const std::string& kind, std::uint32_t nodes) {
    return table.find_or_make({.virtual_pfs = kind == "fixed" ? kind : kind + "-1",
                               .declared_name = kind == "fixed" ? kind : kind + "-{jobid}",
                               .nodes = nodes,
                               .jobid = "1"},
                              kNow);
  };
  const auto nodes_of = [&](AppId app) {
    return table.share_to_come(app, kNow).own_value("nodes");
  };
  const AppId job = find("job", 8).app;
  EXPECT_EQ(nodes_of(job), 8U);
  EXPECT_FALSE(find("job", 8).other_nodes);
  EXPECT_TRUE(find("job", 16).other_nodes);
  EXPECT_EQ(nodes_of(job), 16U);
  EXPECT_FALSE(find("job", 0).other_nodes) << "not known is not another number";
  EXPECT_EQ(nodes_of(job), 16U);
  EXPECT_EQ(nodes_of(find("big", 8).app), 1000U);
  EXPECT_EQ(nodes_of(find("fixed", 8).app), std::nullopt);
}

TEST(VirtualPfsTable, TheUserOfItsJobIsKnownWhileAllItsRequestsAreOfOneJob) {
  VirtualPfsTable table({{.name = "u-{dir}", .share = {}}}, 10, kNow);
  const auto find = [&](const std::string& jobid, std::optional<std::uint32_t> uid) {
    return table
        .find_or_make(
            {.virtual_pfs = "u-x", .declared_name = "u-{dir}", .job_uid = uid, .jobid = jobid},
            kNow)
        .app;
  };
  const AppId app = find("1", std::nullopt);
  EXPECT_EQ(table[app].info->job_uid, std::nullopt);
  (void)find("1", 1001);
  EXPECT_EQ(table[app].info->job_uid, 1001U) << "the job was registered later";
  (void)find("1", std::nullopt);
  EXPECT_EQ(table[app].info->job_uid, 1001U);
  (void)find("2", 1001);
  EXPECT_EQ(table[app].info->job_uid, std::nullopt) << "it is of two jobs";
  (void)find("2", 1001);
  EXPECT_EQ(table[app].info->job_uid, std::nullopt);
}

TEST(VirtualPfsTable, TheTimeToFinishCountsFromWhenItIsLearnt) {
  using std::chrono::seconds;
  const VirtualPfsConfig job = {
      .name = "a", .share = {.finish_bytes = {1000}}, .finish_within = seconds(10)};
  VirtualPfsTable table({job}, 10, kNow);
  EXPECT_EQ(table[AppId{1}].info->share().finish_by, kNow + seconds(10));
  EXPECT_TRUE(table.reconfigure({job}, 10, kNow + seconds(5)).empty());
  EXPECT_EQ(table[AppId{1}].info->share().finish_by, kNow + seconds(10))
      << "the same promise goes on";
  VirtualPfsConfig longer = job;
  longer.finish_within = seconds(20);
  EXPECT_EQ(table.reconfigure({longer}, 10, kNow + seconds(5)).size(), 1U);
  EXPECT_EQ(table[AppId{1}].info->share().finish_by, kNow + seconds(25));
}

TEST(VirtualPfsTable, WhatIsDoneOfSoManyBytesIsNotAskedForAgain) {
  using std::chrono::seconds;
  VirtualPfsTable table(
      {{.name = "a", .share = {.finish_bytes = {1000}}, .finish_within = seconds(10)}}, 10, kNow);
  const auto to_come = [&](Duration later) {
    return table.share_to_come(AppId{1}, kNow + later).finish_bytes.count;
  };
  std::uint64_t& done = table.counters(AppId{1}).done.of(IoKind::write).bytes;
  EXPECT_EQ(to_come(seconds(0)), 1000U);
  done = 400;
  EXPECT_EQ(to_come(seconds(9)), 600U);
  EXPECT_EQ(to_come(seconds(10)), 0U) << "its time is over";
  done = 1200;
  EXPECT_EQ(to_come(seconds(1)), 0U);
}

}  // namespace
}  // namespace vpfs::stage
