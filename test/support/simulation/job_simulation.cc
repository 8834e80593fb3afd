#include "test/support/simulation/job_simulation.h"

#include <algorithm>
#include <utility>

#include "schedulers/policies/adaptbf.h"

namespace vpfs {

JobSimulation::JobSimulation(const SchedulerSettings& settings, sim::Device::Settings device,
                             std::uint64_t seed)
    : settings_(settings),
      scheduler_(make_scheduler("adaptbf", settings).value()),
      device_(device),
      random_(seed) {}

void JobSimulation::set_job(std::uint32_t job, std::uint64_t nodes) {
  if (job >= jobs_.size()) jobs_.resize(job + 1);
  (void)scheduler_->set_share(AppId{job}, {.own = {{"nodes", nodes}}}, now());
  dispatch();
}

void JobSimulation::remove(std::uint32_t job) {
  scheduler_->remove(AppId{job}, now());
  dispatch();
}

void JobSimulation::flood(std::uint32_t job, std::uint32_t in_flight, Cost least, Cost most) {
  jobs_[job].flood = in_flight;
  jobs_[job].least = least;
  jobs_[job].most = most;
  refill(job);
  dispatch();
}

void JobSimulation::trickle(std::uint32_t job, Duration interval, Cost cost) {
  jobs_[job].interval = interval;
  jobs_[job].trickled = cost;
  ++jobs_[job].source;
  if (interval > Duration::zero()) {
    drop_at(now() + interval, job, jobs_[job].source);
  }
}

void JobSimulation::drop_at(TimePoint time, std::uint32_t index, std::uint64_t source) {
  const auto drop = [this, index, source] {
    const Job& job = jobs_[index];
    if (source != job.source) return;
    enqueue(index, job.trickled);
    drop_at(now() + job.interval, index, source);
  };
  engine_.at(time, drop, kDrop);
}

void JobSimulation::arrive(std::uint32_t job, Cost cost) {
  enqueue(job, cost);
  dispatch();
}

void JobSimulation::enqueue(std::uint32_t job, Cost cost) {
  if (free_.empty()) free_.push_back(&storage_.emplace_back());
  Tracked& request = *free_.back();
  free_.pop_back();
  request = {};
  request.app = AppId{job};
  request.cost = cost;
  request.size = Bytes{cost};
  request.arrival = now();
  request.number = jobs_[job].arrived++;
  ++jobs_[job].in_flight;
  scheduler_->enqueue(request, now());
}

void JobSimulation::refill(std::uint32_t index) {
  Job& job = jobs_[index];
  while (job.in_flight < job.flood) {
    enqueue(index, job.least + random_() % (job.most - job.least + 1));
  }
}

void JobSimulation::dispatch() {
  ask_again_ = kNever;
  first_ = std::min(first_, now());
  for (;;) {
    const Scheduler::Decision decision = scheduler_->next(now());
    if (decision.request == nullptr) {
      if (scheduler_->queued() > 0 && scheduler_->outstanding() < settings_.depth.requests) {
        wait(decision.until);
      }
      break;
    }
    auto& request = static_cast<Tracked&>(*decision.request);
    Job& job = jobs_[std::to_underlying(request.app)];
    if (request.number != job.sent) ++faults_.out_of_order;
    ++job.sent;
    const TimePoint end = device_.serve(request.cost * 1000 / speed_permille_, now());
    engine_.at(
        end, [this, &request] { finish(request); }, kEnd);
  }
  check_records();
}

void JobSimulation::wait(TimePoint until) {
  if (until == kNever) {
    ++faults_.no_time;
    return;
  }
  const Duration period = settings_.own.of<AdapTbfSettings>().period;
  const Duration in_period = (now() - first_) % period;
  if (until <= now() || until > now() - in_period + period) ++faults_.too_late;
  ask_again_ = until;
}

// Checks after each of the first steps, then now and then: it costs as much as all the rest.
void JobSimulation::check_records() {
  ++steps_;
  if (steps_ > 4000 && steps_ % 64 != 0) return;
  std::int64_t sum = 0;
  for (std::uint32_t job = 0; job < jobs_.size(); ++job)
    sum += report(job).integer("record").value_or(0);
  if (sum != 0) ++faults_.records_not_zero;
}

void JobSimulation::finish(Tracked& request) {
  const auto index = std::to_underlying(request.app);
  scheduler_->complete(request, request.cost, now());
  jobs_[index].done += request.cost;
  ++jobs_[index].requests;
  --jobs_[index].in_flight;
  free_.push_back(&request);
  refill(index);
}

bool JobSimulation::step(TimePoint end) {
  const bool asks = ask_again_ <= engine_.next();
  const TimePoint at = std::max(std::min(ask_again_, engine_.next()), now());
  if (at == kNever || at > end) return false;
  if (!asks) {
    engine_.step(at);
    dispatch();
    return true;
  }
  // Nothing may go a nanosecond earlier. At that time a request may go, or a period has ended.
  if (at - Duration(1) > now() && scheduler_->next(at - Duration(1)).request != nullptr) {
    ++faults_.missed;
    return false;
  }
  engine_.skip_to(at);
  const std::size_t queued = scheduler_->queued();
  dispatch();
  const bool period_ended =
      (at - first_) % settings_.own.of<AdapTbfSettings>().period == Duration::zero();
  if (scheduler_->queued() == queued && !period_ended) ++faults_.too_early;
  return true;
}

void JobSimulation::run_until(TimePoint end) {
  while (step(end)) {
  }
  engine_.skip_to(end);
}

void JobSimulation::drain() {
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    jobs_[job].flood = 0;
    ++jobs_[job].source;
  }
  while (step(kNever - Duration(1))) {
  }
}

std::string JobSimulation::faults() const {
  std::string all;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) all += std::to_string(count) + " times " + std::string(what) + "; ";
  };
  add(faults_.records_not_zero, "the records did not sum to zero");
  add(faults_.no_time, "nothing said when to ask again");
  add(faults_.too_late, "that was after the end of the period");
  add(faults_.too_early, "there was nothing to send then");
  add(faults_.missed, "something could be sent before");
  add(faults_.out_of_order, "a job's requests changed their order");
  return all;
}

Cost JobSimulation::done() const {
  Cost sum = 0;
  for (const Job& job : jobs_) sum += job.done;
  return sum;
}

}  // namespace vpfs
