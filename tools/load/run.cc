#include "tools/load/run.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/result.h"
#include "net/latch.h"
#include "tools/load/filler.h"
#include "tools/load/mount.h"
#include "tools/load/process.h"

namespace vpfs::load {
namespace {

using namespace std::chrono_literals;

// Requests that are under way when the run ends may take that much longer.
constexpr Duration kGrace = 30s;

CpuTime cpu_time() {
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {.user = seconds(usage.ru_utime), .system = seconds(usage.ru_stime)};
}

// Tells the thread that watches the run when the processes of all workers have ended, and when the
// workers have finished. Outlives both.
class AllEnded {
 public:
  explicit AllEnded(std::size_t workers) : working_(workers), unfinished_(workers) {}

  // Once for each worker, on its thread.
  void one_has() {
    if (--working_ == 0) asio::post(loop_, [this] { all_have_ = true; });
  }
  // Likewise, when it has nothing to do any more.
  void one_has_finished() {
    asio::post(loop_, [this] { --unfinished_; });
  }
  // Those that follow are for the watching thread, which runs the loop.
  [[nodiscard]] asio::io_context& loop() { return loop_; }
  [[nodiscard]] bool all_have() const { return all_have_; }
  [[nodiscard]] bool all_have_finished() const { return unfinished_ == 0; }

 private:
  std::atomic<std::size_t> working_;
  std::size_t unfinished_;
  bool all_have_ = false;
  asio::io_context loop_{1};
  // It also waits when there is no signal left to wait for.
  asio::executor_work_guard<asio::io_context::executor_type> work_{loop_.get_executor()};
};

// An event loop, the processes that live on it, and one meter for each application.
class LoadWorker {
 public:
  LoadWorker(const LoadSettings& settings, const Filler& filler, const Clock& clock,
             const RunEnd& end)
      : settings_(settings), filler_(filler), clock_(clock), end_(end) {
    for (std::size_t i = 0; i < settings.applications.size(); ++i) {
      meters_.emplace_back(settings.warm_up, end, settings.interval);
    }
  }

  // `node` is the number of the next mount of the run. False when the process shares a mount with
  // others of its node; they are all on one worker.
  bool add(std::size_t application, std::uint64_t number, std::uint32_t node) {
    const ApplicationSettings& chosen = settings_.applications[application];
    const auto found = nodes_.find(chosen.node);
    const bool shares = found != nodes_.end();
    if (!shares) mounts_.push_back(make_mount(settings_, chosen, node, clock_));
    Mount& mount = shares ? *found->second : *mounts_.back();
    if (!shares && !chosen.node.empty()) nodes_.emplace(chosen.node, &mount);
    processes_.emplace_back(Process::Context{.settings = settings_,
                                             .application = chosen,
                                             .filler = filler_,
                                             .clock = clock_,
                                             .end = end_},
                            number, mount, meters_[application]);
    return !shares;
  }

  // Each returns once all processes have done it.
  [[nodiscard]] Result<void> prepare();
  void work(TimePoint origin, AllEnded& ended);
  // Ends the run early. Called from another thread than work().
  void end_early() {
    asio::post(loop_, [this] {
      if (working_ > 0) give_grace(clock_.now());
    });
  }

  [[nodiscard]] const std::deque<Meter>& meters() const { return meters_; }

 private:
  void run_loop() {
    loop_.restart();
    loop_.run();
  }
  void give_grace(TimePoint end) {
    grace_.expires_at(end + kGrace);
    grace_.async_wait([this](std::error_code error) {
      if (error) return;
      for (Process& process : processes_) process.close();
    });
  }

  const LoadSettings& settings_;
  const Filler& filler_;
  const Clock& clock_;
  const RunEnd& end_;
  asio::io_context loop_{1};
  asio::steady_timer grace_{loop_};
  std::size_t working_ = 0;  // processes that make requests
  std::deque<Meter> meters_;
  std::vector<std::unique_ptr<Mount>> mounts_;
  std::map<std::string, Mount*> nodes_;  // those that have a name
  std::deque<Process> processes_;
};

void rethrow(const std::exception_ptr& problem) {
  if (problem) std::rethrow_exception(problem);
}

Result<void> LoadWorker::prepare() {
  Result<void> outcome;
  std::size_t left = processes_.size();
  const auto done = [&](const std::exception_ptr& problem, const Result<void>& good) {
    rethrow(problem);
    if (!good && outcome) outcome = good;
    if (--left == 0) loop_.stop();
  };
  for (Process& process : processes_) asio::co_spawn(loop_, process.prepare(), done);
  if (left > 0) run_loop();
  return outcome;
}

void LoadWorker::work(TimePoint origin, AllEnded& ended) {
  if (processes_.empty()) return ended.one_has();
  give_grace(origin + end_.get());
  working_ = processes_.size();
  std::size_t finishing = working_;
  for (Process& process : processes_) {
    const auto finished = [&](const std::exception_ptr& problem) {
      rethrow(problem);
      if (--finishing > 0) return;
      for (Process& each : processes_) each.close();
    };
    const auto worked = [&, finished](const std::exception_ptr& problem) {
      rethrow(problem);
      if (--working_ == 0) {
        grace_.cancel();
        ended.one_has();
      }
      asio::co_spawn(loop_, process.finish(), finished);
    };
    asio::co_spawn(loop_, process.run(origin), worked);
  }
  run_loop();
}

// Spreads the processes over the workers; those of one node stay together.
void add_processes(const LoadSettings& settings, std::deque<LoadWorker>& workers) {
  std::size_t turn = 0;
  std::uint32_t node = 1;
  std::map<std::string, std::size_t> worker_of_node;
  for (std::size_t i = 0; i < settings.applications.size(); ++i) {
    const ApplicationSettings& application = settings.applications[i];
    for (std::uint64_t number = 0; number < application.processes; ++number) {
      std::size_t chosen = turn++ % workers.size();
      if (!application.node.empty()) {
        chosen = worker_of_node.emplace(application.node, chosen).first->second;
      }
      if (workers[chosen].add(i, number, node)) ++node;
    }
  }
}

// Threads wait here until all are ready and the run begins.
class StartLine {
 public:
  explicit StartLine(std::size_t threads) : missing_(threads) {}

  // The origin of the run; empty when a thread failed to get ready.
  std::optional<TimePoint> wait(Result<void> ready, const Clock& clock) {
    std::unique_lock lock(mutex_);
    if (!ready && outcome_) outcome_ = std::move(ready);
    if (--missing_ == 0) {
      origin_ = clock.now();
      all_here_.notify_all();
    } else {
      all_here_.wait(lock, [this] { return missing_ == 0; });
    }
    if (!outcome_) return std::nullopt;
    return origin_;
  }

  [[nodiscard]] const Result<void>& outcome() const { return outcome_; }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::size_t missing_;
  Result<void> outcome_;
  TimePoint origin_ = {};
};

std::vector<Meter::Live> live_numbers(const std::deque<LoadWorker>& workers, std::size_t count) {
  std::vector<Meter::Live> numbers(count);
  for (const LoadWorker& worker : workers) {
    for (std::size_t i = 0; i < count; ++i) {
      const Meter::Live part = worker.meters()[i].live();
      numbers[i].bytes += part.bytes;
      numbers[i].requests += part.requests;
      numbers[i].errors += part.errors;
      numbers[i].verify_failures += part.verify_failures;
    }
  }
  return numbers;
}

// Waits for moments of the run, or for what ends it before: a signal, or the end of all processes.
class Moments {
 public:
  Moments(TimePoint origin, const Clock& clock, RunEnd& end, AllEnded& ended, bool until_done)
      : origin_(origin), clock_(clock), end_(end), ended_(ended), until_done_(until_done) {
    signals_.async_wait([this](std::error_code error, int /*number*/) {
      if (error) return;
      // A second signal ends the program at once.
      signals_.clear();
      if (is_finishing_) return;
      end_.end_at(clock_.now() - origin_);
      ended_early_ = true;
    });
  }

  // False when the run ends before `time`.
  [[nodiscard]] bool wait_until(Duration time) {
    if (is_over()) return false;
    bool there = false;
    timer_.expires_at(origin_ + time);
    timer_.async_wait([&there](std::error_code error) { there = !error; });
    while (!there && !is_over()) ended_.loop().run_one();
    timer_.cancel();
    ended_.loop().poll();
    return there && !is_over();
  }
  // After the last moment: files are verified and removed, which may take long. A signal does not
  // lose the results meanwhile.
  void wait_for_all() {
    is_finishing_ = true;
    while (!ended_.all_have_finished()) ended_.loop().run_one();
  }
  [[nodiscard]] bool ended_early() const { return ended_early_; }

 private:
  [[nodiscard]] bool is_over() {
    if (!is_done_ && until_done_ && ended_.all_have()) {
      is_done_ = true;
      end_.end_at(clock_.now() - origin_);
    }
    return ended_early_ || is_done_;
  }

  TimePoint origin_;
  const Clock& clock_;
  RunEnd& end_;
  AllEnded& ended_;
  bool until_done_;
  bool is_done_ = false;
  bool ended_early_ = false;
  bool is_finishing_ = false;
  asio::steady_timer timer_{ended_.loop()};
  asio::signal_set signals_{ended_.loop(), SIGINT, SIGTERM};
};

// Shows a line for each second that is measured, and gives the CPU time of that part. Returns when
// the run ends.
CpuTime watch(const LoadSettings& settings, const std::deque<LoadWorker>& workers, Moments& moments,
              const std::function<void(const std::string&)>& live) {
  const std::size_t count = settings.applications.size();
  if (live) {
    live(fmt::format("files are ready, the run begins: {} of warm-up, then {} are measured",
                     to_string(settings.warm_up), to_string(settings.duration)));
  }
  if (!moments.wait_until(settings.warm_up)) return {};
  const CpuTime before = cpu_time();
  std::vector<Meter::Live> last = live_numbers(workers, count);
  for (Duration measured = 1s; measured <= settings.duration; measured += 1s) {
    if (!moments.wait_until(settings.warm_up + measured)) break;
    std::vector<Meter::Live> now = live_numbers(workers, count);
    if (live) live(live_line(settings, last, now, measured, 1s));
    last = std::move(now);
  }
  (void)moments.wait_until(settings.run_length());
  const CpuTime after = cpu_time();
  return {.user = after.user - before.user, .system = after.system - before.system};
}

}  // namespace

Result<RunResult> run(const LoadSettings& settings, const Clock& clock,
                      const std::function<void(const std::string&)>& live) {
  std::uint64_t largest = 2 * kMiB;
  for (const ApplicationSettings& each : settings.applications) {
    largest = std::max(largest, each.size.count);
  }
  Result<Filler> filler = Filler::make(static_cast<std::size_t>(largest));
  VPFS_TRY(filler);
  RunEnd end(settings.run_length());
  std::deque<LoadWorker> workers;
  for (std::uint64_t i = 0; i < settings.threads; ++i) {
    workers.emplace_back(settings, *filler, clock, end);
  }
  add_processes(settings, workers);

  StartLine start_line(workers.size() + 1);
  AllEnded ended(workers.size());
  std::vector<std::jthread> threads;
  for (LoadWorker& worker : workers) {
    threads.emplace_back([&worker, &start_line, &ended, &clock] {
      const std::optional<TimePoint> origin = start_line.wait(worker.prepare(), clock);
      if (!origin) return;
      worker.work(*origin, ended);
      ended.one_has_finished();
    });
  }
  RunResult result;
  const std::optional<TimePoint> origin = start_line.wait({}, clock);
  if (origin) {
    Moments moments(*origin, clock, end, ended, settings.until_done);
    result.cpu = watch(settings, workers, moments, live);
    result.ended_early = moments.ended_early();
    if (result.ended_early) {
      for (LoadWorker& worker : workers) worker.end_early();
    }
    moments.wait_for_all();
  }
  threads.clear();  // joins
  if (!origin) return std::unexpected(start_line.outcome().error());

  result.duration = std::max(end.get() - settings.warm_up, Duration::zero());
  result.totals.resize(settings.applications.size());
  for (const LoadWorker& worker : workers) {
    for (std::size_t i = 0; i < result.totals.size(); ++i) {
      worker.meters()[i].add_to(result.totals[i]);
    }
  }
  return result;
}

}  // namespace vpfs::load
