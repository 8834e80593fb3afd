#include "schedulers/conformance/exercise.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "schedulers/policies/registry.h"

namespace vpfs::conformance {

Exercise::Exercise(const PolicyKind& kind, const SchedulerSettings& settings, bool holds_back,
                   std::uint32_t flows, std::uint64_t seed)
    : kind_(kind),
      scheduler_(make_scheduler(kind, settings)),
      depth_(settings.depth),
      holds_back_(holds_back),
      classes_(settings.classes.mode == TrafficClasses::Mode::none
                   ? 1
                   : settings.classes.classes.size()),
      waiting_(flows * classes_),
      limited_(flows),
      allocated_(flows),
      random_(seed) {
  for (std::uint32_t app = 0; app < flows; ++app) change_share(app);
}

std::uint64_t Exercise::draw_magnitude(std::uint64_t most) {
  const std::uint64_t bits = draw(static_cast<std::uint64_t>(std::bit_width(most)));
  return std::min(most, (std::uint64_t{1} << bits) + draw(std::uint64_t{1} << bits));
}

bool Exercise::expect(bool is_so, std::string_view otherwise) {
  if (!is_so && problem_.empty()) problem_ = otherwise;
  return problem_.empty();
}

// Rates are at least 1 MiB/s, so that no request waits longer than the clock can tell.
void Exercise::change_share(std::uint32_t app) {
  Share share = {.weight = static_cast<std::uint32_t>(draw_magnitude(Share::kMaxWeight))};
  if (draw(2) == 0) {
    if (draw(2) == 0) share.rate = {kMiB + draw_magnitude(Share::kMaxRate - kMiB)};
    if (draw(3) == 0) share.operations = 1 + draw_magnitude(1'000'000);
    share.burst = {draw_magnitude(kGiB)};
    share.burst_operations = draw_magnitude(100);
    if (draw(3) == 0) share.min = {kMiB + draw_magnitude(kGiB)};
    share.realtime = draw(2) == 0;
    share.rank = static_cast<std::uint8_t>(draw(Share::kMaxRank + 1));
    if (draw(2) == 0) share.latency = Duration(static_cast<std::int64_t>(draw_magnitude(1U << 30)));
    if (draw(4) == 0) share.finish_bytes = {draw_magnitude(kGiB)};
    share.finish_by = now_ + std::chrono::seconds(draw(1000));
    share.own = {{"nodes", draw_magnitude(1U << 20)}};
    for (const ShareWord& word : kind_.share_words) {
      if (word.name == "nodes") continue;
      const std::uint64_t more = word.most - word.least;
      share.own.push_back({word.name, word.least + (more == 0 ? 0 : draw_magnitude(more))});
    }
  }
  limited_[app] = share.rate.count > 0 || share.operations > 0;
  (void)scheduler_->set_share(AppId{app}, share, now_);
}

void Exercise::remove(std::uint32_t app) {
  scheduler_->remove(AppId{app}, now_);
  limited_[app] = false;
  allocated_[app] = false;
}

void Exercise::remove_all() {
  for (std::uint32_t app = 0; app < flows(); ++app) remove(app);
}

void Exercise::allocate(std::uint32_t app) {
  Limits limits;
  if (draw(2) == 0) limits.bytes = BytesPerSecond{draw(4) == 0 ? 0 : draw_magnitude(kGiB)};
  if (draw(2) == 0) limits.operations = draw(1000);
  if (!expect(scheduler_->set_limits(AppId{app}, limits, now_) == kind_.caps,
              "set_limits() answers otherwise than PolicyKind::caps")) {
    return;
  }
  allocated_[app] = kind_.caps && limits.any();
  if (draw(4) != 0) return;
  scheduler_->set_hold(Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 40))), now_);
}

void Exercise::count_elsewhere(std::uint32_t app) {
  const auto period = Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 62)));
  scheduler_->served_elsewhere(AppId{app}, draw_magnitude(kMaxCost), period, now_);
}

void Exercise::enqueue(IoRequest& request) {
  const auto app = static_cast<std::uint32_t>(draw(flows()));
  const auto of_class = static_cast<std::uint8_t>(draw(classes_));
  request = {.app = AppId{app},
             .kind = IoKind{static_cast<std::uint8_t>(draw(3))},
             .traffic_class = of_class,
             .cost = draw_magnitude(kMaxCost),
             .arrival = now_};
  request.size = {draw(10) == 0 ? 0 : draw_magnitude(request.cost)};
  scheduler_->enqueue(request, now_);
  queue_of(request).push_back(&request);
  ++queued_;
}

void Exercise::dispatch_all() {
  while (problem_.empty()) {
    const Scheduler::Decision decision = scheduler_->next(now_);
    if (decision.request == nullptr) {
      until_ = decision.until;
      return check_nothing_may_go();
    }
    if (!check_sent(decision.request)) return;
  }
}

bool Exercise::check_sent(const IoRequest* sent) {
  if (!expect(outstanding_.empty() || outstanding_.size() < depth_.requests,
              "more requests go than the depth allows")) {
    return false;
  }
  // Looked for by address: the request may be none of ours.
  const auto queue = std::ranges::find_if(waiting_, [sent](const std::deque<IoRequest*>& each) {
    return std::ranges::find(each, sent) != each.end();
  });
  if (!expect(queue != waiting_.end(),
              "a request goes that is not queued: it went before, was "
              "withdrawn, or was never given")) {
    return false;
  }
  if (!expect(queue->front() == sent, "requests of one flow change their order")) return false;
  IoRequest* const request = queue->front();
  if (!expect(!request->queued, "a request that was sent is marked as queued") ||
      !expect(request->sent == now_, "a policy writes to IoRequest::sent")) {
    return false;
  }
  queue->pop_front();
  --queued_;
  outstanding_cost_ += counted(*request);
  outstanding_.push_back(request);
  return expect(outstanding_.size() == 1 || outstanding_cost_ <= depth_.cost,
                "more cost goes than the depth allows");
}

Cost Exercise::counted(const IoRequest& request) const {
  return std::min(request.cost, depth_.cost - depth_.cost / 2);
}

void Exercise::complete_one(std::vector<IoRequest*>& free) {
  if (outstanding_.empty()) return;
  std::swap(outstanding_[draw(outstanding_.size())], outstanding_.back());
  IoRequest* const request = outstanding_.back();
  outstanding_.pop_back();
  outstanding_cost_ -= counted(*request);
  const auto charge_more = [&] {
    scheduler_->charge_more(*request, {.cost = draw_magnitude(kMaxCost), .size = {draw(kMiB)}},
                            now_);
  };
  if (draw(8) == 0) charge_more();
  const Cost done = draw(3) == 0 ? draw(request->cost + 1) : request->cost;
  scheduler_->complete(*request, done, now_);
  if (draw(16) == 0) charge_more();
  free.push_back(request);
}

void Exercise::withdraw_one(std::vector<IoRequest*>& free) {
  auto& queue = waiting_[draw(waiting_.size())];
  if (queue.empty()) return;
  const auto place = queue.begin() + static_cast<std::ptrdiff_t>(draw(queue.size()));
  IoRequest* const request = *place;
  queue.erase(place);
  --queued_;
  draw(2) == 0 ? scheduler_->let_pass(*request, now_) : scheduler_->withdraw(*request, now_);
  (void)expect(!request->queued, "a request that was withdrawn is marked as queued");
  free.push_back(request);
}

void Exercise::pass_time() {
  if (draw(2) == 0) now_ += Duration(static_cast<std::int64_t>(draw_magnitude(1ULL << 45)));
}

void Exercise::pass_wait() {
  if (until_ != kNever) now_ = std::max(now_, until_);
}

void Exercise::check_status() {
  if (!expect(scheduler_->queued() == queued_, "queued() counts otherwise than what is queued") ||
      !expect(scheduler_->outstanding() == outstanding_.size(), "outstanding() is wrong")) {
    return;
  }
  for (std::uint32_t app = 0; app < flows() && problem_.empty(); ++app) check_flow(app);
}

void Exercise::check_flow(std::uint32_t app) {
  const FlowState state = scheduler_->flow(AppId{app});
  std::size_t waiting = 0;
  const IoRequest* oldest = nullptr;
  for (std::size_t i = app * classes_; i < (app + 1) * classes_; ++i) {
    waiting += waiting_[i].size();
    if (waiting_[i].empty()) continue;
    if (oldest == nullptr || waiting_[i].front()->arrival < oldest->arrival) {
      oldest = waiting_[i].front();
    }
  }
  const auto sent = std::ranges::count(outstanding_, AppId{app}, &IoRequest::app);
  const WaitReason why = scheduler_->why_waiting(AppId{app}, now_);
  (void)expect(state.queued == waiting, "flow() has another number of queued requests");
  (void)expect(state.outstanding == static_cast<std::size_t>(sent),
               "flow() has another number of outstanding requests");
  (void)expect(state.oldest == oldest, "flow() has another oldest request");
  (void)expect(why.reason.empty() == (waiting == 0),
               "why_waiting() gives no reason for a head, or one where there is none");
  (void)expect(!why.eligible || *why.eligible > now_, "why_waiting() names a time that has passed");
  (void)scheduler_->report(AppId{app}, now_);
  (void)expect(scheduler_->held(AppId{app}, now_).sum() >= Duration::zero(),
               "the times that heads were held are negative");
}

std::deque<IoRequest*>& Exercise::queue_of(const IoRequest& request) {
  return waiting_[std::to_underlying(request.app) * classes_ + request.traffic_class];
}

// Whether every flow's head fits: which head is next is the policy's decision.
bool Exercise::every_head_fits() const {
  if (queued_ == 0) return false;
  if (outstanding_.empty()) return true;
  if (outstanding_.size() >= depth_.requests) return false;
  return std::ranges::all_of(waiting_, [this](const auto& queue) {
    return queue.empty() || (outstanding_cost_ <= depth_.cost &&
                             counted(*queue.front()) <= depth_.cost - outstanding_cost_);
  });
}

// The policy is work conserving except for limits, and a wait names its time.
void Exercise::check_nothing_may_go() {
  if (!every_head_fits()) return;
  const auto any = [](const std::vector<bool>& flows) {
    return std::ranges::find(flows, true) != flows.end();
  };
  const bool waits_for_time =
      holds_back_ || (kind_.knows(ShareField::operations) && any(limited_)) || any(allocated_);
  (void)expect(waits_for_time, "is not work conserving: nothing goes, and every head fits");
  (void)expect(until_ != kNever, "would wait for ever");
  (void)expect(until_ > now_, "waits until a time that has passed");
}

}  // namespace vpfs::conformance
