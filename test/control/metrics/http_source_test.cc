#include "control/metrics/http_source.h"

#include <optional>

#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

class FakeOwner : public Owner {
 public:
  Hello hello() const override { return {}; }
  void ask(Envelope request, const Caller& caller, Answer answer) override {
    asked = std::move(request);
    rights = caller.rights;
    answer(reply);
  }
  std::unique_ptr<Link> make_link(const Caller& /*caller*/) override { return nullptr; }
  void cycle(const Cycle& /*cycle*/, Link& /*link*/, CycleAnswer& /*answer*/) override {}

  Envelope asked;
  Rights rights = Rights::own;
  Envelope reply;
};

TEST(HttpSource, AsksTheOwnerForNumbersAndRulesAsACallerThatMayRead) {
  FakeOwner owner;
  owner.reply.mutable_stats_reply()->set_connections(7);
  const HttpSource source = http_source(owner, [] { return "draining"; });
  std::optional<StatsReply> came;
  source.stats([&](StatsReply reply) { came = std::move(reply); });
  ASSERT_TRUE(came);
  EXPECT_EQ(came->connections(), 7U);
  EXPECT_TRUE(owner.asked.stats().rules());
  EXPECT_EQ(owner.rights, Rights::read);
  EXPECT_EQ(source.not_ready(), "draining");
}

TEST(HttpSource, AnErrorIsNotAnAnswer) {
  FakeOwner owner;
  owner.reply.mutable_error()->set_code(Error::UNAVAILABLE);
  bool called = false;
  http_source(owner, {}).stats([&](const StatsReply& /*reply*/) { called = true; });
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace vpfs::control
