#include "sim/cluster/placement/block_application.h"

#include <utility>

#include "base/check.h"

namespace vpfs::sim {
namespace {

// Streams of the seed. Those of blocks follow.
enum BlockStream : std::uint64_t { kShape = 1, kRoutes, kStaging, kFirstBlock };

// Two streams of a block: what tasks do, and its messages.
std::uint64_t plan_stream(std::size_t block) {
  return kFirstBlock + 2 * block;
}
std::uint64_t message_stream(std::size_t block) {
  return kFirstBlock + 2 * block + 1;
}

}  // namespace

BlockApplication::BlockApplication(ClusterMachine machine, Settings settings,
                                   std::function<void()> done)
    : machine_(machine),
      settings_(std::move(settings)),
      done_(std::move(done)),
      tasks_(settings_.profile.tasks),
      lists_(settings_.data.devices.size()),
      routes_(settings_.seed, kRoutes) {
  const BlockProfile& profile = settings_.profile;
  VPFS_ASSERT(profile.tasks > 0 && settings_.nodes.size() == profile.tasks);
  VPFS_ASSERT(settings_.data.places() > 0);
  Random random(settings_.seed);
  blocks_ = draw_blocks(profile, random);
  Random shape(settings_.seed, kShape);
  shape_ = draw_message_shape(profile, shape);
  rounds_.resize(blocks_.size());
  if (settings_.data.is_central()) {
    readers_.emplace(profile.tasks, profile.readers);
    writers_.emplace(profile.tasks, profile.writers);
    came_.resize(blocks_.size() * profile.tasks);
    gathered_.resize(blocks_.size() * profile.tasks);
  }
  make_plans();
}

// What each of so many tasks moves in a block.
Bytes BlockApplication::part(std::size_t block, std::uint32_t tasks) const {
  return {settings_.profile.data.count / 100 * blocks_[block].percent / tasks};
}

void BlockApplication::make_plans() {
  const std::uint32_t tasks = settings_.profile.tasks;
  plans_.resize(blocks_.size() * tasks);
  std::vector<std::optional<std::uint32_t>> homes;
  for (const NodeId node : settings_.nodes) homes.push_back(settings_.data.home(node));
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    Random random(settings_.seed, plan_stream(block));
    for (std::uint32_t task = 0; task < tasks; ++task) {
      if (blocks_[block].step == Step::compute) {
        plans_[index(block, task)].compute = random.exponential(settings_.profile.compute_mean);
      } else if (blocks_[block].step != Step::communicate) {
        plan_access(block, task, homes[task], random);
      }
    }
  }
}

// The same numbers are drawn whatever the data are on, so that runs can be compared.
void BlockApplication::plan_access(std::size_t block, std::uint32_t task,
                                   std::optional<std::uint32_t> home, Random& random) {
  const BlockProfile& profile = settings_.profile;
  const DataPlace& data = settings_.data;
  Plan& its = plans_[index(block, task)];
  const bool is_remote = random.chance(profile.remote_percent);
  its.hits = random.chance(profile.memory_percent) && !blocks_[block].is_staging;
  const std::uint64_t draw = random.next();
  const std::uint64_t share = random.below(profile.tasks);
  if (data.is_central()) {
    its.server = static_cast<std::uint32_t>(draw % data.servers);
    return;
  }
  const bool may_be_local = settings_.rules.locality == Locality::by_node ? home.has_value()
                            : settings_.rules.locality == Locality::by_share
                                ? share < data.places()
                                : data.places() >= profile.tasks;
  its.is_local = data.access == Access::local ? home.has_value() : may_be_local && !is_remote;
  // Only a share may be local without a device.
  if (its.is_local) {
    its.device = settings_.nodes[task];
    return;
  }
  const bool is_kept = data.access != Access::disperse;
  const auto place = static_cast<std::uint32_t>((is_kept ? task : draw) % data.places());
  its.device = data.devices[place];
  its.number = lists_.add(place);
}

void BlockApplication::start() {
  stage_in();
}

void BlockApplication::stage_in() {
  stage(true, [this] {
    running_ = settings_.profile.tasks;
    for (std::uint32_t task = 0; task < settings_.profile.tasks; ++task) begin_block(task);
  });
}

void BlockApplication::stage_out() {
  stage(false, done_);
}

// Each device has an equal part of all data.
void BlockApplication::stage(bool is_in, std::function<void()> done) {
  if (settings_.data.is_central()) return done();
  const std::vector<NodeId>& devices = settings_.data.devices;
  const Bytes size = {settings_.profile.data.count / devices.size()};
  if (settings_.tally != nullptr) settings_.tally->staged += {size.count * devices.size()};
  Random random(settings_.seed, kStaging);
  const auto left = std::make_shared<std::size_t>(devices.size());
  const std::function<void()> ended = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (const NodeId device : devices) {
    const auto server = static_cast<std::uint32_t>(random.below(machine_.storage.servers()));
    route_.clear();
    if (is_in) {
      if (!settings_.rules.has_free_nodes) {
        machine_.storage.write(device, device, false, routes_, route_);
      }
      fetch(server, size, ended);
    } else {
      if (!settings_.rules.has_free_nodes) {
        machine_.storage.read(device, device, false, routes_, route_);
      }
      store(server, size, ended);
    }
  }
}

void BlockApplication::begin_block(std::uint32_t task) {
  Task& its = tasks_[task];
  const bool is_at_end = its.block == blocks_.size();
  if ((is_at_end || blocks_[its.block].step == Step::compute) && its.sending > 0) {
    its.is_held = true;
    return;
  }
  if (is_at_end) return end_task();
  its.began = machine_.engine.now();
  switch (blocks_[its.block].step) {
    case Step::compute:
      return compute(task);
    case Step::communicate:
      its.round = 0;
      return begin_round(task);
    case Step::read:
    case Step::write:
      return access(task);
  }
}

void BlockApplication::end_block(std::uint32_t task) {
  Task& its = tasks_[task];
  if (settings_.tally != nullptr) {
    settings_.tally->time(blocks_[its.block].step) += machine_.engine.now() - its.began;
  }
  ++its.block;
  begin_block(task);
}

void BlockApplication::end_task() {
  if (--running_ == 0) stage_out();
}

void BlockApplication::compute(std::uint32_t task) {
  machine_.engine.after(plan(task).compute, [this, task] { end_block(task); });
}

void BlockApplication::access(std::uint32_t task) {
  const bool reads = blocks_[tasks_[task].block].step == Step::read;
  const Plan& its = plan(task);
  if (settings_.tally != nullptr) count(its, part(tasks_[task].block, settings_.profile.tasks));
  if (settings_.data.is_central()) return reads ? read_central(task) : write_central(task);
  if (its.is_local) return access_local(task, reads);
  return reads ? read_remote(task) : write_remote(task);
}

void BlockApplication::count(const Plan& plan, Bytes size) {
  Tally& tally = *settings_.tally;
  const bool is_central = settings_.data.is_central();
  (is_central ? tally.central : plan.is_local ? tally.local : tally.remote) += size;
}

void BlockApplication::access_local(std::uint32_t task, bool reads) {
  const Plan& its = plan(task);
  const StorageRates& rates = machine_.storage.rates();
  std::optional<BytesPerSecond> cap;
  route_.clear();
  if (settings_.rules.has_free_nodes) {
    cap = its.hits ? rates.memory : reads ? rates.read : rates.write;
  } else if (reads) {
    machine_.storage.read(its.device, its.device, its.hits, routes_, route_);
  } else {
    machine_.storage.write(its.device, its.device, its.hits, routes_, route_);
  }
  move(TrafficClass::storage, part(tasks_[task].block, settings_.profile.tasks), cap, true,
       [this, task] { end_block(task); });
}

void BlockApplication::read_remote(std::uint32_t task) {
  const auto serve = [this, task] {
    const Plan& its = plan(task);
    const NodeId node = settings_.nodes[task];
    const bool is_free = its.hits && settings_.rules.has_free_nodes;
    route_.clear();
    if (is_free) {
      machine_.topology.route(its.device, node, routes_, route_);
    } else {
      machine_.storage.read(its.device, node, its.hits, routes_, route_);
    }
    move(TrafficClass::storage, part(tasks_[task].block, settings_.profile.tasks), std::nullopt,
         settings_.rules.hits_may_rise || !its.hits, [this, task] { end_block(task); });
  };
  if (settings_.rules.has_trace_order) return lists_.come(plan(task).number, serve);
  serve();
}

void BlockApplication::write_remote(std::uint32_t task) {
  const Plan& its = plan(task);
  const NodeId node = settings_.nodes[task];
  const bool is_free = its.hits && settings_.rules.has_free_nodes;
  route_.clear();
  if (is_free) {
    machine_.topology.route(node, its.device, routes_, route_);
  } else {
    machine_.storage.write(node, its.device, its.hits, routes_, route_);
  }
  move(TrafficClass::storage, part(tasks_[task].block, settings_.profile.tasks), std::nullopt,
       settings_.rules.hits_may_rise || !its.hits, [this, task] {
         const auto end = [this, task] { end_block(task); };
         if (settings_.rules.has_trace_order) return lists_.come(plan(task).number, end);
         end();
       });
}

void BlockApplication::read_central(std::uint32_t task) {
  const std::size_t block = tasks_[task].block;
  const std::uint32_t leader = readers_->leader(task);
  if (leader != task) {
    if (came_[index(block, task)] != 0) end_block(task);
    return;
  }
  const std::uint32_t members = readers_->end(leader) - leader;
  const Bytes size = {part(block, settings_.profile.tasks).count * members};
  route_.clear();
  fetch(plan(task).server, size, [this, leader, block] {
    pass_on(leader, block);
    end_block(leader);
  });
}

void BlockApplication::pass_on(std::uint32_t leader, std::size_t block) {
  for (std::uint32_t task = leader + 1; task < readers_->end(leader); ++task) {
    send(leader, task, part(block, settings_.profile.tasks), [this, task, block] {
      came_[index(block, task)] = 1;
      if (tasks_[task].block == block) end_block(task);
    });
  }
}

void BlockApplication::write_central(std::uint32_t task) {
  const std::size_t block = tasks_[task].block;
  const std::uint32_t leader = writers_->leader(task);
  if (leader == task) {
    ++gathered_[index(block, leader)];
    return store_if_gathered(leader);
  }
  send(task, leader, part(block, settings_.profile.tasks), [this, task, leader, block] {
    ++gathered_[index(block, leader)];
    if (tasks_[leader].block == block) store_if_gathered(leader);
    end_block(task);
  });
}

// The leader counts as one of those that came.
void BlockApplication::store_if_gathered(std::uint32_t leader) {
  const std::size_t block = tasks_[leader].block;
  const std::uint32_t members = writers_->end(leader) - leader;
  if (gathered_[index(block, leader)] < members) return;
  route_.clear();
  store(plan(leader).server, {part(block, settings_.profile.tasks).count * members},
        [this, leader] { end_block(leader); });
}

// From a server and those that have copies, an equal part from each. What the route has already is
// the way on the node's side.
void BlockApplication::fetch(std::uint32_t server, Bytes size, std::function<void()> done) {
  const Storage& storage = machine_.storage;
  const std::uint32_t copies = 1 + storage.replicas(storage.servers());
  const auto left = std::make_shared<std::uint32_t>(copies);
  const std::vector<LinkId> node = route_;
  const auto ended = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (std::uint32_t i = 0; i < copies; ++i) {
    route_ = node;
    storage.fetch((server + i) % storage.servers(), false, route_);
    move(TrafficClass::storage, {size.count / copies}, storage.rates().read, true, ended);
  }
}

// Nothing waits for replicas.
void BlockApplication::store(std::uint32_t server, Bytes size, std::function<void()> done) {
  const Storage& storage = machine_.storage;
  storage.store(server, false, route_);
  move(TrafficClass::storage, size, storage.rates().write, true, std::move(done));
  for (std::uint32_t i = 1; i <= storage.replicas(storage.servers()); ++i) {
    route_.clear();
    storage.replicate(server, (server + i) % storage.servers(), route_);
    move(TrafficClass::storage, size, std::nullopt, true, [] {});
  }
}

MessageRounds& BlockApplication::rounds(std::size_t block) {
  if (rounds_[block] == nullptr) {
    Random random(settings_.seed, message_stream(block));
    rounds_[block] = std::make_unique<MessageRounds>(settings_.profile, shape_, random);
  }
  return *rounds_[block];
}

void BlockApplication::begin_round(std::uint32_t task) {
  const std::size_t block = tasks_[task].block;
  const std::uint32_t round = tasks_[task].round;
  const MessageRounds& all = rounds(block);
  for (const MessageRounds::Message& each : all.sent_by(task, round)) {
    send(task, each.to, each.size, [this, to = each.to, block, round] { heard(to, block, round); });
  }
  end_rounds(task);
}

// A task that sent all and waits for nothing else goes on.
void BlockApplication::send(std::uint32_t from, std::uint32_t to, Bytes size,
                            std::function<void()> arrived) {
  ++tasks_[from].sending;
  route_.clear();
  machine_.topology.route(settings_.nodes[from], settings_.nodes[to], routes_, route_);
  move(TrafficClass::communication, size, std::nullopt, settings_.rules.messages_may_rise,
       [this, from, arrived = std::move(arrived)] {
         --tasks_[from].sending;
         arrived();
         if (tasks_[from].sending > 0 || !tasks_[from].is_held) return;
         tasks_[from].is_held = false;
         begin_block(from);
       });
}

void BlockApplication::heard(std::uint32_t task, std::size_t block, std::uint32_t round) {
  rounds(block).arrived(task, round);
  if (tasks_[task].block == block && tasks_[task].round == round) end_rounds(task);
}

void BlockApplication::end_rounds(std::uint32_t task) {
  Task& its = tasks_[task];
  MessageRounds& all = rounds(its.block);
  if (!all.has_heard_all(task, its.round)) return;
  if (++its.round < all.rounds()) return begin_round(task);
  if (all.leave()) rounds_[its.block].reset();
  end_block(task);
}

void BlockApplication::move(TrafficClass traffic_class, Bytes size,
                            std::optional<BytesPerSecond> cap, bool may_rise,
                            std::function<void()> done) {
  machine_.network.start({.route = route_,
                          .size = size,
                          .traffic_class = traffic_class,
                          .cap = cap,
                          .may_rise = may_rise},
                         std::move(done));
}

}  // namespace vpfs::sim
