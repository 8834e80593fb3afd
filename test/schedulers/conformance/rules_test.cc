// The rules find policies that break them.
#include "schedulers/conformance/rules.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/flow_table.h"
#include "test/support/allocation_count.h"

namespace vpfs::conformance {
namespace {

using ::testing::HasSubstr;

enum class Fault : std::uint8_t {
  none,
  twice,        // sends the last request again
  last_first,   // changes the order inside a flow
  forgets,      // a withdrawn request stays
  sleeps,       // sends nothing for ever
  waits,        // keeps requests back without a cause
  miscounts,    // says that one more is queued
  allocates,    // for each request
  claims_caps,  // says that it limits flows
  sends_restored,
};

Fault fault = Fault::none;

// First come, first served, with a fault.
class Faulty final : public Policy {
 public:
  void enqueue(IoRequest& request, TimePoint) override {
    if (fault == Fault::allocates) note_ = std::make_unique<int>(1);
    request.queued = true;
    ++accounts_.of(request).account.queued;
    fault == Fault::last_first ? line_.push_front(&request) : line_.push_back(&request);
  }
  Head head(TimePoint now) override {
    if (fault == Fault::sleeps) return {};
    if (fault == Fault::waits) return {.until = now + Duration(1)};
    if (fault == Fault::twice && line_.empty()) return {.request = last_};
    return {.request = line_.empty() ? nullptr : line_.front()};
  }
  void dispatch(IoRequest& request, TimePoint) override {
    last_ = &request;
    if (!take(request)) return;
    ++accounts_.of(request).account.outstanding;
  }
  void complete(const IoRequest& request, Cost, TimePoint) override {
    --accounts_.of(request).account.outstanding;
  }
  void withdraw(IoRequest& request, TimePoint) override {
    if (fault != Fault::forgets) (void)take(request);
  }
  Result<void> set_share(AppId app, const Share&, TimePoint) override {
    accounts_.grow(app);
    return {};
  }
  bool set_limits(AppId, const Limits&, TimePoint) override { return false; }
  void restored(TimePoint) override {
    if (fault == Fault::sends_restored && !line_.empty()) (void)take(*line_.back());
  }
  std::size_t queued() const override { return line_.size() + (fault == Fault::miscounts ? 1 : 0); }
  IoRequest* any_queued() const override { return line_.empty() ? nullptr : line_.front(); }
  HoldClock& holds() override { return accounts_.holds(); }
  FlowState flow(AppId app) const override {
    const auto index = std::to_underlying(app);
    if (index >= accounts_.size()) return {};
    const auto of_flow = [app](const IoRequest* each) { return each->app == app; };
    std::deque<IoRequest*> by_arrival = line_;
    if (fault == Fault::last_first) std::ranges::reverse(by_arrival);
    const auto oldest = std::ranges::find_if(by_arrival, of_flow);
    return accounts_[index].account.state(oldest == by_arrival.end() ? nullptr : *oldest);
  }
  WaitReason why_waiting(AppId, TimePoint) const override { return {.reason = kIsNext}; }

 private:
  bool take(IoRequest& request) {
    const auto place = std::ranges::find(line_, &request);
    if (place == line_.end()) return false;
    line_.erase(place);
    request.queued = false;
    --accounts_.of(request).account.queued;
    return true;
  }

  std::deque<IoRequest*> line_;
  FlowTable<FlowQueue> accounts_;
  IoRequest* last_ = nullptr;
  std::unique_ptr<int> note_;
};

PolicyKind kind_of(bool caps) {
  return {.name = "faulty",
          .caps = caps,
          .make = [](const SchedulerSettings&, RateLimits&, Scheduler::Part)
              -> std::unique_ptr<Policy> { return std::make_unique<Faulty>(); }};
}

std::string said_of(Fault which, std::string_view name) {
  fault = which;
  const PolicyKind kind = kind_of(which == Fault::claims_caps);
  const auto rule = std::ranges::find(rules(), name, &Rule::name);
  return rule == rules().end() ? "there is no such rule"
                               : rule->check({.kind = &kind, .allocations = allocation_count});
}

TEST(ConformanceRules, APolicyWithoutAFaultKeepsThoseThatNeedNoCareWithMemory) {
  for (const Rule& rule : rules()) {
    if (rule.name == "allocation") continue;  // a deque allocates
    EXPECT_EQ(said_of(Fault::none, rule.name), "") << rule.name;
  }
}

TEST(ConformanceRules, APolicyThatIsNotMadeIsFound) {
  PolicyKind kind = kind_of(false);
  kind.make = [](const SchedulerSettings&, RateLimits&,
                 Scheduler::Part) -> std::unique_ptr<Policy> { return nullptr; };
  EXPECT_EQ(rules().front().name, kFirstRule);
  EXPECT_EQ(rules().front().check({.kind = &kind}), "make() makes nothing");
}

TEST(ConformanceRules, ARequestThatGoesTwiceIsFound) {
  EXPECT_THAT(said_of(Fault::twice, "once"), HasSubstr("a request goes that is not queued"));
}

TEST(ConformanceRules, AnotherOrderInsideAFlowIsFound) {
  EXPECT_THAT(said_of(Fault::last_first, "once"), HasSubstr("change their order"));
}

TEST(ConformanceRules, AWithdrawnRequestThatStaysIsFound) {
  EXPECT_THAT(said_of(Fault::forgets, "once"), HasSubstr("withdrawn"));
}

TEST(ConformanceRules, ARequestThatNeverGoesIsFound) {
  EXPECT_THAT(said_of(Fault::sleeps, "once"), HasSubstr("is not work conserving"));
  EXPECT_THAT(said_of(Fault::sleeps, "large"), HasSubstr("does not go in its turn"));
  EXPECT_THAT(said_of(Fault::sleeps, "flows"), HasSubstr("0 of 20 requests go"));
  EXPECT_THAT(said_of(Fault::sleeps, "successor"), HasSubstr("0 of 70 requests go"));
  EXPECT_THAT(said_of(Fault::sleeps, "elsewhere"), HasSubstr("holds requests"));
}

TEST(ConformanceRules, APolicyMayWaitOnlyIfItIsSaidSo) {
  EXPECT_THAT(said_of(Fault::waits, "once"), HasSubstr("is not work conserving"));
}

TEST(ConformanceRules, ACountThatIsWrongIsFound) {
  EXPECT_THAT(said_of(Fault::miscounts, "once"), HasSubstr("queued() counts otherwise"));
  EXPECT_THAT(said_of(Fault::miscounts, "idle"), HasSubstr("queued() is not zero"));
}

TEST(ConformanceRules, AnAllocationForEachRequestIsFound) {
  EXPECT_THAT(said_of(Fault::allocates, "allocation"), HasSubstr("allocates"));
}

TEST(ConformanceRules, ALimitThatIsClaimedIsFound) {
  EXPECT_THAT(said_of(Fault::claims_caps, "limits"), HasSubstr("PolicyKind::caps"));
}

TEST(ConformanceRules, AStateThatLosesARequestIsFound) {
  EXPECT_THAT(said_of(Fault::sends_restored, "successor"),
              HasSubstr("restore() changes what is queued"));
}

TEST(ConformanceRules, WeightsOfAPolicyWithoutThemDivideEqually) {
  fault = Fault::none;
  const PolicyKind kind = kind_of(false);
  const std::uint32_t weights[] = {1, 4};
  const std::vector<Cost> sent = divided_by_weight({.kind = &kind}, weights);
  EXPECT_EQ(sent, (std::vector<Cost>{64 * kMiB, 64 * kMiB}));
}

}  // namespace
}  // namespace vpfs::conformance
