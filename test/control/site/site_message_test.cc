#include "control/site/site_message.h"

#include <gmock/gmock.h>

#include "test/control/coordinator/live_book.h"

namespace vpfs::coordinator {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words_of(const control::Site::Rule& rule) {
  return {rule.words().begin(), rule.words().end()};
}

TEST(SiteMessage, HasTheRulesInTheirOrderWithoutTotals) {
  LiveBook book;
  book.start("gold", "jobid={a b}", {"weight=4", "total_rate=1GiB/s", "for=2h"});
  book.start("night", "uid=7", {"rate=5MiB/s", "total_iops=1k"});
  const control::Site site = book.site();
  EXPECT_EQ(site.origin(), "main");
  ASSERT_EQ(site.rules_size(), 2);
  EXPECT_EQ(site.rules(0).name(), "night");
  EXPECT_EQ(site.rules(0).condition(), "uid=7");
  EXPECT_THAT(words_of(site.rules(0)), ElementsAre("rate=5MiB/s"));
  EXPECT_EQ(site.rules(0).until_at(), 0);
  EXPECT_EQ(site.rules(1).name(), "gold");
  EXPECT_THAT(words_of(site.rules(1)), ElementsAre("weight=4"));
  EXPECT_EQ(site.rules(1).until_at(), 1'800'000'000 + 7200);
}

TEST(SiteMessage, HasJobsAndTheirRules) {
  LiveBook book;
  book.run(stage::StartJob{.job = {.jobid = "4711",
                                   .clients = {"10.0.0.1"},
                                   .uids = {1001},
                                   .account = "physics",
                                   .nodes = 16},
                           .words = {"weight=3", "total_rate=1GiB/s"},
                           .until = book.now + std::chrono::hours(1)});
  const control::Site site = book.site();
  ASSERT_EQ(site.jobs_size(), 1);
  const control::JobState& job = site.jobs(0);
  EXPECT_EQ(job.jobid(), "4711");
  EXPECT_EQ(job.nodes(), 16U);
  EXPECT_EQ(job.account(), "physics");
  EXPECT_THAT(job.clients(), ElementsAre("10.0.0.1"));
  EXPECT_THAT(job.uids(), ElementsAre(1001U));
  EXPECT_EQ(job.until_at(), 1'800'000'000 + 3600);
  ASSERT_EQ(site.rules_size(), 1);
  EXPECT_EQ(site.rules(0).name(), "job:4711");
  EXPECT_THAT(words_of(site.rules(0)), ElementsAre("weight=3"));
}

TEST(SiteMessage, IsTheSameForTheSameBook) {
  LiveBook one;
  LiveBook other;
  for (LiveBook* each : {&one, &other}) {
    each->start("a", "jobid=a", {"weight=2"});
    each->start("b", "jobid=b", {});
  }
  EXPECT_EQ(one.site().SerializeAsString(), other.site().SerializeAsString());
  other.stop("b");
  EXPECT_NE(one.site().SerializeAsString(), other.site().SerializeAsString());
}

TEST(SiteMessage, EndsWithTheRule) {
  LiveBook book;
  book.start("gold", "jobid=a", {"for=2h"});
  EXPECT_FALSE(book.live().expire(book.now + std::chrono::hours(1)));
  EXPECT_TRUE(book.live().expire(book.now + std::chrono::hours(2)));
  EXPECT_EQ(book.site().rules_size(), 0);
}

}  // namespace
}  // namespace vpfs::coordinator
