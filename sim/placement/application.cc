#include "sim/placement/application.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vpfs::sim {

MarkovApplication::MarkovApplication(Site site, Settings settings, std::function<void()> done)
    : site_(site), settings_(std::move(settings)), done_(std::move(done)) {
  const Profile& profile = settings_.profile;
  VPFS_ASSERT(profile.tasks > 0 && settings_.nodes.size() == profile.tasks);
  VPFS_ASSERT(settings_.data.places() > 0);
  for (std::uint32_t task = 0; task < profile.tasks; ++task) {
    Task& its = tasks_.emplace_back(Task{.random = Random(settings_.seed, task + 1)});
    if (!profile.lockstep) its.own = draw_steps(profile, its.random);
  }
  Random random(settings_.seed);
  if (profile.lockstep) draw_lockstep(random);
}

void MarkovApplication::draw_lockstep(Random& random) {
  steps_ = draw_steps(settings_.profile, random);
  for (const Step step : steps_) {
    messages_.push_back(step == Step::communicate ? draw_messages(settings_.profile, random)
                                                  : std::vector<Message>());
  }
  for (Task& each : tasks_) each.to_arrive.resize(steps_.size());
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    for (const Message& each : messages_[step]) ++tasks_[each.to].to_arrive[step];
  }
}

void MarkovApplication::start() {
  stage(true);
}

// Of each task that does I/O, to or from its own place.
void MarkovApplication::stage(bool in) {
  const Profile& profile = settings_.profile;
  running_ = 1;
  if (settings_.is_staged && !settings_.data.is_central()) {
    for (std::uint32_t task = 0; task < profile.io_tasks; ++task) {
      const NodeId device = settings_.data.devices[settings_.data.own(task, profile.tasks)];
      const std::uint32_t server = task % site_.storage.servers();
      Random& random = tasks_[task].random;
      route_.clear();
      if (in) {
        site_.storage.fetch(server, device, false, route_);
        site_.storage.write(device, device, false, random, route_);
      } else {
        site_.storage.read(device, device, false, random, route_);
        site_.storage.store(device, server, false, route_);
      }
      ++running_;
      move(TrafficClass::storage, profile.data_bytes, [this, in] { staged(in); });
    }
  }
  staged(in);
}

void MarkovApplication::staged(bool in) {
  if (--running_ > 0) return;
  if (!in) return done_();
  running_ = settings_.profile.tasks;
  for (std::uint32_t task = 0; task < settings_.profile.tasks; ++task) begin_step(task);
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
    if (--running_ == 0) stage(false);
    return;
  }
  its.step_began = site_.engine.now();
  switch (steps[its.step]) {
    case Step::compute:
      site_.engine.after(profile.compute_time, [this, task] { end_step(task); });
      return;
    case Step::communicate:
      return communicate(task);
    case Step::read:
      return access(task, true);
    case Step::write:
      return access(task, false);
  }
}

void MarkovApplication::end_step(std::uint32_t task) {
  Task& its = tasks_[task];
  if (settings_.tally != nullptr) {
    settings_.tally->time(steps_of(its)[its.step]) += site_.engine.now() - its.step_began;
  }
  ++its.step;
  begin_step(task);
}

void MarkovApplication::access(std::uint32_t task, bool reads) {
  const Profile& profile = settings_.profile;
  const DataPlace& data = settings_.data;
  Task& its = tasks_[task];
  const std::uint32_t place = data.draw(task, profile.tasks, profile.remote_percent, its.random);
  const bool hits = its.random.chance(profile.memory_percent);
  const NodeId node = settings_.nodes[task];
  if (settings_.tally != nullptr) count_access(place, node);
  route_.clear();
  if (data.is_central()) {
    if (reads) {
      site_.storage.fetch(place, node, hits, route_);
    } else {
      site_.storage.store(node, place, hits, route_);
    }
  } else if (reads) {
    site_.storage.read(data.devices[place], node, hits, its.random, route_);
  } else {
    site_.storage.write(node, data.devices[place], hits, its.random, route_);
  }
  move(TrafficClass::storage, profile.io_bytes, [this, task] { end_step(task); });
  if (reads || !data.is_central() || data.servers == 1) return;
  // Nobody waits for the replica.
  route_.clear();
  site_.storage.replicate(place, (place + 1) % data.servers, route_);
  move(TrafficClass::storage, profile.io_bytes, [] {});
}

void MarkovApplication::count_access(std::uint32_t place, NodeId node) {
  Tally& tally = *settings_.tally;
  const DataPlace& data = settings_.data;
  const bool is_local = !data.is_central() && data.devices[place] == node;
  (data.is_central() ? tally.central
   : is_local        ? tally.local
                     : tally.remote) += settings_.profile.io_bytes;
}

void MarkovApplication::communicate(std::uint32_t task) {
  Task& its = tasks_[task];
  its.sending = 0;
  if (settings_.profile.lockstep) {
    for (const Message& each : messages_[its.step]) {
      if (each.from == task) send(each, its.step);
    }
  } else {
    for (const Message& each : draw_messages_of(task, settings_.profile, its.random)) {
      send(each, its.step);
    }
  }
  end_communication_if_all_came(task);
}

void MarkovApplication::send(const Message& message, std::size_t step) {
  Task& sender = tasks_[message.from];
  ++sender.sending;
  route_.clear();
  site_.topology.route(settings_.nodes[message.from], settings_.nodes[message.to], sender.random,
                       route_);
  move(TrafficClass::communication, message.size,
       [this, from = message.from, to = message.to, step] { arrived(from, to, step); });
}

void MarkovApplication::arrived(std::uint32_t from, std::uint32_t to, std::size_t step) {
  --tasks_[from].sending;
  const bool is_awaited = settings_.profile.lockstep;
  if (is_awaited) --tasks_[to].to_arrive[step];
  end_communication_if_all_came(from);
  if (is_awaited && tasks_[to].step == step) end_communication_if_all_came(to);
}

void MarkovApplication::end_communication_if_all_came(std::uint32_t task) {
  const Task& its = tasks_[task];
  if (its.sending > 0) return;
  if (settings_.profile.lockstep && its.to_arrive[its.step] > 0) return;
  end_step(task);
}

void MarkovApplication::move(TrafficClass traffic_class, Bytes size, std::function<void()> done) {
  site_.network.start({.route = route_, .size = size, .traffic_class = traffic_class},
                      std::move(done));
}

}  // namespace vpfs::sim
