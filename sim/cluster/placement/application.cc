#include "sim/cluster/placement/application.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {
namespace {

// Random numbers that are the same for all tasks, whichever comes first: streams of the seed behind
// those of tasks.
constexpr std::uint64_t kCommunications = std::uint64_t{1} << 32;
constexpr std::uint64_t kSizes = std::uint64_t{2} << 32;
constexpr std::uint64_t kServers = std::uint64_t{3} << 32;

}  // namespace

MarkovApplication::MarkovApplication(Machine machine, Settings settings, std::function<void()> done)
    : machine_(machine), settings_(std::move(settings)), done_(std::move(done)) {
  const Profile& profile = settings_.profile;
  VPFS_ASSERT(profile.tasks > 0 && settings_.nodes.size() == profile.tasks);
  VPFS_ASSERT(settings_.data.places() > 0 && profile.messages > 0);
  VPFS_ASSERT(profile.least_io_percent > 0 && profile.least_io_percent <= 100);
  for (std::uint32_t task = 0; task < profile.tasks; ++task) {
    Task& its = tasks_.emplace_back(Task{.random = Random(settings_.seed, task + 1)});
    its.home = settings_.data.home(settings_.nodes[task]);
    if (!profile.lockstep) its.own = draw_steps(profile, its.random);
  }
  Random random(settings_.seed);
  if (profile.lockstep) steps_ = draw_steps(profile, random);
  Random servers(settings_.seed, kServers);
  first_server_ = static_cast<std::uint32_t>(servers.below(machine_.storage.servers()));
}

void MarkovApplication::start() {
  stage_in();
}

// What a task reads in its steps, or writes, but no more than its data.
Bytes MarkovApplication::staged_bytes(const Task& task, Step step) const {
  const std::vector<Step>& steps = steps_of(task);
  Bytes all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == step) all += io_bytes(i);
  }
  return std::min(all, settings_.profile.data_bytes);
}

// The data of a task are staged to its home, or else to the place that it keeps to.
void MarkovApplication::stage_in() {
  const Profile& profile = settings_.profile;
  running_ = 1;
  if (settings_.is_staged && !settings_.data.is_central()) {
    for (std::uint32_t task = 0; task < profile.io_tasks; ++task) {
      Task& its = tasks_[task];
      const std::uint32_t place = its.home.value_or(settings_.data.kept(task, profile.tasks));
      const NodeId device = settings_.data.devices[place];
      const std::uint32_t server = (first_server_ + task) % machine_.storage.servers();
      route_.clear();
      machine_.storage.fetch(server, false, route_);
      machine_.storage.write(device, device, false, its.random, route_);
      ++running_;
      const Bytes read = staged_bytes(its, Step::read);
      if (settings_.tally != nullptr) settings_.tally->staged += read;
      move(TrafficClass::storage, read, [this] { staged_in(); });
    }
  }
  staged_in();
}

void MarkovApplication::staged_in() {
  if (--running_ > 0) return;
  running_ = settings_.profile.tasks;
  for (std::uint32_t task = 0; task < settings_.profile.tasks; ++task) begin_step(task);
}

// Its transfers refer to nothing of the application, which is gone when they end.
void MarkovApplication::stage_out() {
  const Profile& profile = settings_.profile;
  if (!settings_.is_staged || settings_.data.is_central()) return;
  for (std::uint32_t task = 0; task < profile.io_tasks; ++task) {
    Task& its = tasks_[task];
    const Bytes written = staged_bytes(its, Step::write);
    if (written.count == 0) continue;
    if (settings_.tally != nullptr) settings_.tally->staged += written;
    const std::uint32_t place = its.home.value_or(settings_.data.kept(task, profile.tasks));
    const NodeId device = settings_.data.devices[place];
    const std::uint32_t server = (first_server_ + task) % machine_.storage.servers();
    route_.clear();
    machine_.storage.read(device, device, false, its.random, route_);
    machine_.storage.store(server, false, route_);
    move(TrafficClass::storage, written, [] {});
    replicate(server, machine_.storage.servers(), written);
  }
}

void MarkovApplication::begin_step(std::uint32_t task) {
  const Profile& profile = settings_.profile;
  Task& its = tasks_[task];
  const std::vector<Step>& steps = steps_of(its);
  // Steps that are none for this task.
  while (its.step < steps.size() && task >= profile.io_tasks &&
         (steps[its.step] == Step::read || steps[its.step] == Step::write)) {
    ++its.step;
  }
  if (its.step == steps.size()) {
    if (--running_ > 0) return;
    stage_out();
    return done_();
  }
  its.step_began = machine_.engine.now();
  switch (steps[its.step]) {
    case Step::compute:
      machine_.engine.after(profile.compute_time, [this, task] { end_step(task); });
      return;
    case Step::communicate:
      its.phase = 0;
      begin_phase(task);
      return end_phases_that_are_over(task);
    case Step::read:
      return access(task, true);
    case Step::write:
      return access(task, false);
  }
}

void MarkovApplication::end_step(std::uint32_t task) {
  Task& its = tasks_[task];
  if (settings_.tally != nullptr) {
    settings_.tally->time(steps_of(its)[its.step]) += machine_.engine.now() - its.step_began;
  }
  ++its.step;
  begin_step(task);
}

// The same for all tasks of a step, so that in lockstep none has more to do than others.
Bytes MarkovApplication::io_bytes(std::size_t step) const {
  const Profile& profile = settings_.profile;
  if (profile.least_io_percent == 100) return profile.io_bytes;
  Random random(settings_.seed, kSizes + step);
  const std::uint64_t percent =
      profile.least_io_percent + random.below(101 - profile.least_io_percent);
  return {profile.io_bytes.count / 100 * percent};
}

void MarkovApplication::access(std::uint32_t task, bool reads) {
  const Profile& profile = settings_.profile;
  const DataPlace& data = settings_.data;
  Task& its = tasks_[task];
  const std::uint32_t place =
      data.draw(task, profile.tasks, its.home, profile.remote_percent, its.random);
  const bool hits = its.random.chance(profile.memory_percent);
  const NodeId node = settings_.nodes[task];
  const Bytes size = io_bytes(its.step);
  if (settings_.tally != nullptr) count_access(place, node, size);
  if (data.is_central()) return access_central(task, place, reads, hits);
  route_.clear();
  if (reads) {
    machine_.storage.read(data.devices[place], node, hits, its.random, route_);
  } else {
    machine_.storage.write(node, data.devices[place], hits, its.random, route_);
  }
  move(TrafficClass::storage, size, [this, task] { end_step(task); });
}

void MarkovApplication::count_access(std::uint32_t place, NodeId node, Bytes size) {
  Tally& tally = *settings_.tally;
  const DataPlace& data = settings_.data;
  const bool is_local = !data.is_central() && data.devices[place] == node;
  (data.is_central() ? tally.central : is_local ? tally.local : tally.remote) += size;
}

void MarkovApplication::access_central(std::uint32_t task, std::uint32_t server, bool reads,
                                       bool hits) {
  const Bytes size = io_bytes(tasks_[task].step);
  const std::uint32_t servers = settings_.data.servers;
  if (!reads) {
    route_.clear();
    machine_.storage.store(server, hits, route_);
    move(TrafficClass::storage, size, [this, task] { end_step(task); });
    return replicate(server, servers, size);
  }
  const std::uint32_t copies = 1 + machine_.storage.replicas(servers);
  // The last part that arrives ends the step.
  const auto left = std::make_shared<std::uint32_t>(copies);
  for (std::uint32_t i = 0; i < copies; ++i) {
    const Bytes part = {size.count / copies + (i < size.count % copies ? 1 : 0)};
    route_.clear();
    machine_.storage.fetch((server + i) % servers, hits, route_);
    move(TrafficClass::storage, part, [this, task, left] {
      if (--*left == 0) end_step(task);
    });
  }
}

// No task waits for replicas.
void MarkovApplication::replicate(std::uint32_t server, std::uint32_t servers, Bytes size) {
  for (std::uint32_t i = 1; i <= machine_.storage.replicas(servers); ++i) {
    route_.clear();
    machine_.storage.replicate(server, (server + i) % servers, route_);
    move(TrafficClass::storage, size, [] {});
  }
}

MarkovApplication::Communication& MarkovApplication::communication(std::uint32_t number) {
  if (communications_.size() <= number) communications_.resize(number + std::size_t{1});
  std::unique_ptr<Communication>& found = communications_[number];
  if (found != nullptr) return *found;
  std::vector<std::uint32_t> tasks;
  std::vector<std::uint32_t> ranks(tasks_.size());
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    if (std::ranges::count(steps_of(tasks_[task]), Step::communicate) <= number) continue;
    ranks[task] = static_cast<std::uint32_t>(tasks.size());
    tasks.push_back(task);
  }
  Random random(settings_.seed, kCommunications + number);
  const auto count = static_cast<std::uint32_t>(tasks.size());
  Exchange exchange(settings_.profile, count, random);
  std::vector<std::uint32_t> arrived(std::size_t{count} * exchange.phases());
  found = std::make_unique<Communication>(Communication{.exchange = std::move(exchange),
                                                        .tasks = std::move(tasks),
                                                        .ranks = std::move(ranks),
                                                        .arrived = std::move(arrived),
                                                        .left = count});
  return *found;
}

void MarkovApplication::begin_phase(std::uint32_t task) {
  Task& its = tasks_[task];
  const std::uint32_t number = its.communications;
  const std::uint32_t phase = its.phase;
  its.sending = 0;
  const Communication& all = communication(number);
  if (phase == all.exchange.phases()) return;
  for (const Exchange::Message& each : all.exchange.sent_by(all.ranks[task], phase, its.random)) {
    const std::uint32_t to = all.tasks[each.to];
    ++its.sending;
    route_.clear();
    machine_.topology.route(settings_.nodes[task], settings_.nodes[to], its.random, route_);
    move(TrafficClass::communication, each.size,
         [this, task, to, number, phase] { arrived(task, to, number, phase); });
  }
}

void MarkovApplication::arrived(std::uint32_t from, std::uint32_t to, std::uint32_t number,
                                std::uint32_t phase) {
  Communication& all = communication(number);
  ++all.arrived[std::size_t{all.ranks[to]} * all.exchange.phases() + phase];
  --tasks_[from].sending;
  // The receiver may be elsewhere, and the first call may have ended this communication.
  const auto is_there = [&](std::uint32_t task) {
    const Task& its = tasks_[task];
    const std::vector<Step>& steps = steps_of(its);
    return its.communications == number && its.step < steps.size() &&
           steps[its.step] == Step::communicate;
  };
  end_phases_that_are_over(from);
  if (is_there(to)) end_phases_that_are_over(to);
}

void MarkovApplication::end_phases_that_are_over(std::uint32_t task) {
  Task& its = tasks_[task];
  std::unique_ptr<Communication>& all = communications_[its.communications];
  const std::uint32_t rank = all->ranks[task];
  const std::uint32_t phases = all->exchange.phases();
  while (its.phase < phases) {
    const std::uint32_t heard = all->arrived[std::size_t{rank} * phases + its.phase];
    if (its.sending > 0 || heard < all->exchange.heard_by(rank)) return;
    ++its.phase;
    begin_phase(task);
  }
  if (--all->left == 0) all.reset();
  ++its.communications;
  end_step(task);
}

void MarkovApplication::move(TrafficClass traffic_class, Bytes size, std::function<void()> done) {
  machine_.network.start({.route = route_, .size = size, .traffic_class = traffic_class},
                         std::move(done));
}

}  // namespace vpfs::sim
