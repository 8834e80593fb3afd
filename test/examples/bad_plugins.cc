// Plugins that are wrong, each in its own way: -DBAD_... chooses one.
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include <vpfs/schedulers/flow_table.h>
#include <vpfs/schedulers/plugin.h>

namespace {

using namespace vpfs;

// First come, first served, with the faults of its subclasses.
class Line : public Policy {
 public:
  void enqueue(IoRequest& request, TimePoint now) override {
    flows_.push_back(flows_.of(request), request);
    all_.push_back(&request);
    (void)now;
  }
  Head head(TimePoint) override { return {.request = all_.empty() ? nullptr : all_.front()}; }
  void dispatch(IoRequest& request, TimePoint now) override {
    std::erase(all_, &request);
    flows_.dispatch(flows_.of(request), request, now);
  }
  void complete(const IoRequest& request, Cost, TimePoint) override {
    flows_.of(request).account.completed();
  }
  void withdraw(IoRequest& request, TimePoint now) override {
    std::erase(all_, &request);
    flows_.withdraw(flows_.of(request), request, now);
  }
  Result<void> set_share(AppId app, const Share&, TimePoint) override {
    flows_.grow(app);
    return {};
  }
  std::size_t queued() const override { return flows_.queued(); }
  IoRequest* any_queued() const override { return all_.empty() ? nullptr : all_.front(); }
  HoldClock& holds() override { return flows_.holds(); }
  FlowState flow(AppId app) const override { return flows_.state(app); }
  WaitReason why_waiting(AppId, TimePoint) const override { return {.reason = kIsNext}; }

 protected:
  FlowTable<FlowQueue> flows_;
  std::vector<IoRequest*> all_;
};

// Sends the last request twice.
class Steals final : public Line {
 public:
  Head head(TimePoint now) override {
    const Head real = Line::head(now);
    return {.request = real.request == nullptr ? last_ : real.request};
  }
  void dispatch(IoRequest& request, TimePoint now) override {
    if (&request != std::exchange(last_, &request)) Line::dispatch(request, now);
  }

 private:
  IoRequest* last_ = nullptr;
};

// The same, and its lists notice it.
class Doubles final : public Line {
 public:
  Head head(TimePoint now) override {
    const Head real = Line::head(now);
    if (real.request != nullptr) last_ = real.request;
    return {.request = last_};
  }

 private:
  IoRequest* last_ = nullptr;
};

class Hangs final : public Line {
 public:
  Head head(TimePoint now) override {
    for (volatile bool waits = true; waits;) (void)now;
    return {};
  }
};

template <typename Made>
std::unique_ptr<Policy> make(const SchedulerSettings&, RateLimits&, Scheduler::Part) {
  return std::make_unique<Made>();
}
std::unique_ptr<Policy> make_nothing(const SchedulerSettings&, RateLimits&, Scheduler::Part) {
  return nullptr;
}
std::unique_ptr<Policy> make_throw(const SchedulerSettings&, RateLimits&, Scheduler::Part) {
  throw std::runtime_error("no luck today");
}
void read_throws(ConfigReader&, SchedulerSettings&, bool is_chosen) {
  if (is_chosen) throw 42;
}

constinit const PolicyKind kSteals = {.name = "steals", .make = make<Steals>};
constinit const PolicyKind kDoubles = {.name = "doubles", .make = make<Doubles>};
constinit const PolicyKind kHangs = {.name = "hangs", .make = make<Hangs>};
constinit const PolicyKind kNothing = {.name = "nothing", .make = make_nothing};
constinit const PolicyKind kThrows = {.name = "throws", .make = make_throw};
constinit const PolicyKind kReads = {.name = "reads", .make = make<Line>, .read = read_throws};

}  // namespace

VPFS_SCHEDULER_PLUGIN("bad ones", &kSteals, &kDoubles, &kHangs, &kNothing, &kThrows, &kReads);
