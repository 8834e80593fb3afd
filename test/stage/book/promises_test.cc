// Rules and jobs that promise something, with the whole grammar and the policy edf.

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/policies/edf.h"
#include "stage/book/composer.h"
#include "stage/book/rule_book.h"
#include "stage/config/rule_text.h"
#include "test/stage/book/driver.h"

namespace vpfs::stage {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A data server of 1 GiB/s. The program's composer and what it left out are known, as they are to a
// running stage.
class Promises : public ::testing::Test {
 protected:
  Promises() {
    file_.policy = "edf";
    file_.scheduler.own.of<EdfSettings>().capacity = kGiB;
    file_.shown = {Attribute::hint, Attribute::uid};
    file_.virtual_pfs = {{.name = "declared", .share = {}}};
    compose();
  }
  void compose() { suspended_ = composer_.compose(file_, book_.state()).suspended; }
  // "PLACE: text" of what was refused; "": it was done.
  template <typename What>
  std::string refusal(What what) {
    const auto change = book_.prepare(
        {.at = at(0), .who = "alice", .what = std::move(what), .confirm_by = std::nullopt}, file_,
        {.composer = &composer_, .suspended = &suspended_, .read = nullptr});
    if (!change) return change.error().place + ": " + change.error().text;
    book_.commit(change->operation);
    compose();
    EXPECT_THAT(suspended_, IsEmpty());
    return "";
  }
  static StartJob job(const std::string& jobid, const std::string& rate) {
    return {.job = {.jobid = jobid, .clients = {"10.0.0.0/24"}, .uids = {7}},
            .words = {"rate=" + rate, "latency=200ms"}};
  }

  Config file_;
  RuleBook book_{&parse_rule};
  Composer composer_{&parse_rule};
  std::vector<Suspended> suspended_;
};

TEST_F(Promises, NoJobGetsOneThatDoesNotFitTheOthers) {
  EXPECT_EQ(refusal(job("100", "600MiB/s")), "");
  EXPECT_THAT(refusal(job("200", "600MiB/s")), HasSubstr("would not be in force"));
  EXPECT_EQ(refusal(job("200", "300MiB/s")), "");
  EXPECT_EQ(book_.state().jobs.size(), 2U);
}

TEST_F(Promises, NoRuleGetsOneThatDoesNotFitWhicheverIsReadFirst) {
  EXPECT_EQ(refusal(start_rule("a", {"rate=600MiB/s", "latency=200ms"})), "");
  EXPECT_THAT(refusal(start_rule("b", {"rate=600MiB/s", "latency=200ms"})),
              HasSubstr("would not be in force"));
  EXPECT_EQ(refusal(start_rule("b", {"rate=300MiB/s", "latency=200ms"})), "");
  EXPECT_THAT(refusal(ChangeRule{.name = "b", .words = {"rate=600MiB/s"}}),
              HasSubstr("would not be in force"));
  EXPECT_THAT(refusal(ChangeRule{.name = "declared", .words = {"rate=600MiB/s", "latency=200ms"}}),
              HasSubstr("would not be in force"));
  EXPECT_THAT(refusal(job("100", "600MiB/s")), HasSubstr("would not be in force"));
}

}  // namespace
}  // namespace vpfs::stage
