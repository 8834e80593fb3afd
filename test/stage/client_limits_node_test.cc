// Nodes whose applications share their connections to a data server, in virtual time.
#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "stage/client_limits.h"

namespace vpfs::stage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A node with applications of 16 readers or writers each, whose requests are forwarded now and
// then, and one reader whose requests are forwarded at once. All wait in one line for a free
// connection, and refused requests return as with a real client.
class NodeWithSlowApplications {
 public:
  static constexpr int kTasks = 16;

  NodeWithSlowApplications(ClientLimits& limits, std::size_t connections, std::size_t count,
                           IoKind kind)
      : limits_(limits), connections_(connections), kind_(kind), served_(count) {
    for (std::size_t i = 0; i < connections; ++i) client_ = limits.join("a node");
    for (int i = 0; i < kTasks; ++i) {
      for (std::size_t app = 0; app < count; ++app) tasks_.push_back({.app = AppId(app)});
    }
    tasks_.push_back({.app = AppId(count)});
    for (Task& task : tasks_) line_.push_back(&task);
  }
  void ask(TimePoint now) {
    for (Task& task : tasks_) {
      if (!task.awake || now < *task.awake) continue;
      task.awake.reset();
      line_.push_back(&task);
    }
    while (!line_.empty() && held_ < connections_) {
      Task& task = *line_.front();
      line_.pop_front();
      ask(task, now);
    }
  }
  // The oldest request of each application is forwarded.
  void serve(TimePoint now) {
    for (std::size_t app = 0; app < served_.size(); ++app) {
      Task* oldest = nullptr;
      for (Task& task : tasks_) {
        if (!task.held || task.app != AppId(app)) continue;
        if (oldest == nullptr || task.io.order < oldest->io.order) oldest = &task;
      }
      if (oldest == nullptr) continue;
      ++served_[app];
      pass_on(*oldest, now);
    }
  }
  [[nodiscard]] std::size_t least_served() const { return std::ranges::min(served_); }
  [[nodiscard]] std::size_t quick_served() const { return quick_served_; }

 private:
  struct Task {
    AppId app = {};
    std::optional<TimePoint> awake = {};
    bool held = false;
    bool again = false;  // it has been sent back
    Held io = {};
  };
  void ask(Task& task, TimePoint now) {
    if (!task.again) task.io = {};
    const bool is_quick = static_cast<std::size_t>(task.app) == served_.size();
    task.io.app = task.app;
    task.io.client = client_;
    task.io.kind = is_quick ? IoKind::read : kind_;
    task.io.arrival = now;
    task.io.order = ++requests_;
    if (task.io.fingerprint == 0) task.io.fingerprint = requests_;
    task.held = true;
    ++held_;
    limits_.queued(task.io, now);
    if (is_quick) {
      ++quick_served_;
      pass_on(task, now);
      task.awake = now + milliseconds(1);
    }
    while (Held* const io = limits_.take_excess(now)) send_back(*io, now);
  }
  void pass_on(Task& task, TimePoint now) {
    limits_.dispatched(task.io, now);
    limits_.finished(task.io);
    --held_;
    task = {.app = task.app, .awake = now};
  }
  void send_back(const Held& io, TimePoint now) {
    Task& task = *std::ranges::find(tasks_, &io, [](const Task& each) { return &each.io; });
    task.held = false;
    --held_;
    const bool at_once = io.kind == IoKind::read && !task.again;
    task.again = true;
    task.awake = now + (at_once ? Duration::zero() : seconds(5));
  }

  ClientLimits& limits_;
  const std::size_t connections_;
  const IoKind kind_;
  ClientId client_ = {};
  std::deque<Task> tasks_;
  std::deque<Task*> line_;
  std::vector<std::size_t> served_;
  std::uint64_t requests_ = 0;
  std::size_t held_ = 0;
  std::size_t quick_served_ = 0;
};

TEST(ClientLimits, OthersFindAConnectionBesideAnyNumberOfSlowApplications) {
  for (const IoKind kind : {IoKind::read, IoKind::write}) {
    for (const std::size_t connections : {12U, 64U}) {
      for (const std::size_t count : {1U, 2U, 4U, 8U, 20U}) {
        SCOPED_TRACE(::testing::Message() << connections << " connections, " << count);
        ClientLimits limits;
        NodeWithSlowApplications node(limits, connections, count, kind);
        TimePoint now = TimePoint{} + seconds(1000);
        const int ticks = count > 8 ? 50'000 : 20'000;  // milliseconds
        for (int tick = 0; tick < ticks; ++tick, now += milliseconds(1)) {
          node.ask(now);
          if (tick % 100 == 0) node.serve(now);
        }
        RecordProperty("quick", static_cast<int>(node.quick_served()));
        EXPECT_GE(node.quick_served(), ticks * 0.9);
        const std::size_t allowance = connections * 2 / 3;
        // If there are many more than the allowance, some have less luck.
        EXPECT_GE(node.least_served(), count <= allowance ? 180 : 340 * allowance / count);
      }
    }
  }
}

// Two plain jobs on a node: tasks that ask for one request after the other, all in one line for a
// connection. The server takes turns between the jobs, and a request takes it some time.
struct PlainJobs {
  std::size_t tasks = 8;  // of each
  std::size_t connections = 12;
  Duration service[2] = {milliseconds(25), milliseconds(25)};
  IoKind kind = IoKind::write;
};

struct Calls {
  Duration p99 = {};
  std::uint64_t sent_back = 0;
};

Calls run(const PlainJobs& jobs, const ClientLimits::Settings& settings) {
  struct Task {
    std::optional<TimePoint> awake;
    TimePoint since = {};
    bool held = false;
    Held io = {};
  };
  ClientLimits limits;
  limits.configure(settings);
  ClientId client = {};
  std::deque<Task> tasks(2 * jobs.tasks);
  std::deque<Task*> line;
  TimePoint now = TimePoint{} + seconds(1000);
  std::uint64_t order = 0;
  std::size_t open = 0;
  std::size_t in_use = 0;
  Calls calls;
  std::vector<Duration> took;
  const auto ask = [&](Task& task, AppId app) {
    task = {.since = now};
    task.io.app = app;
    task.io.kind = jobs.kind;
    task.io.fingerprint = ++order;
    line.push_back(&task);
  };
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    ask(tasks[i], AppId{static_cast<std::uint32_t>(i % 2)});
  }
  Task* served = nullptr;
  TimePoint done = {};
  Duration work[2] = {};
  for (const TimePoint end = now + seconds(25); now < end; now += milliseconds(1)) {
    for (Task& task : tasks) {
      if (!task.awake || now < *task.awake) continue;
      task.awake.reset();
      line.push_back(&task);
    }
    if (served != nullptr && now >= done) {
      limits.finished(served->io);
      --in_use;
      took.push_back(now - served->since);
      ask(*served, served->io.app);
      served = nullptr;
    }
    while (!line.empty() && in_use < jobs.connections) {
      Task& task = *line.front();
      line.pop_front();
      if (++in_use > open) {
        client = limits.join("a node");
        ++open;
      }
      task.io.client = client;
      task.io.arrival = now;
      task.io.order = ++order;
      task.held = true;
      limits.queued(task.io, now);
      while (Held* const io = limits.take_excess(now)) {
        Task& back = *std::ranges::find(tasks, io, [](Task& each) { return &each.io; });
        back.held = false;
        back.awake = now + seconds(5);
        --in_use;
        ++calls.sent_back;
      }
    }
    if (served != nullptr) continue;
    for (Task& task : tasks) {
      if (!task.held) continue;
      if (served == nullptr) {
        served = &task;
        continue;
      }
      const auto of = [&](const Task& each) { return work[std::to_underlying(each.io.app)]; };
      if (task.io.app == served->io.app ? task.io.order < served->io.order
                                        : of(task) < of(*served)) {
        served = &task;
      }
    }
    if (served == nullptr) continue;
    const auto app = std::to_underlying(served->io.app);
    served->held = false;
    limits.dispatched(served->io, now);
    work[app] += jobs.service[app];
    done = now + jobs.service[app];
  }
  std::ranges::sort(took);
  calls.p99 = took[took.size() * 99 / 100];
  return calls;
}

// They wait for the server, and equally long. Whatever is sent back comes again after five seconds
// and helps no request.
TEST(ClientLimits, PlainJobsAreAsFastAsWithoutALimit) {
  for (const IoKind kind : {IoKind::read, IoKind::write}) {
    for (const std::size_t connections : {8U, 12U, 64U}) {
      for (const std::size_t tasks : {8U, 16U}) {
        for (const Duration second : {milliseconds(25), milliseconds(18), milliseconds(2)}) {
          SCOPED_TRACE(::testing::Message() << connections << " connections, " << tasks
                                            << " tasks, " << second.count() / 1'000'000 << " ms");
          const PlainJobs jobs = {.tasks = tasks,
                                  .connections = connections,
                                  .service = {milliseconds(25), second},
                                  .kind = kind};
          const Calls off = run(jobs, {.enabled = false});
          const Calls automatic = run(jobs, {});
          ASSERT_EQ(off.sent_back, 0U);
          EXPECT_LE(automatic.p99, off.p99 * 3 / 2) << automatic.sent_back << " sent back";
        }
      }
    }
  }
}

}  // namespace
}  // namespace vpfs::stage
