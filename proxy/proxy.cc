#include "proxy/proxy.h"

#include <algorithm>
#include <array>
#include <thread>
#include <tuple>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <spdlog/spdlog.h>

#include "base/result.h"
#include "control/host/config_summary.h"
#include "net/endpoint.h"
#include "net/socket_options.h"
#include "proxy/client_list.h"
#include "proxy/config/config_changes.h"
#include "proxy/config/host_checks.h"
#include "proxy/handover/kept_connections.h"
#include "proxy/status.h"

namespace vpfs::proxy {
namespace {

constexpr Duration kDrainCheck = std::chrono::milliseconds(20);
constexpr Duration kKeeperInterval = std::chrono::milliseconds(100);
// How long the start waits for a silent data server.
constexpr Duration kFirstPatience = std::chrono::seconds(1);

// The proxy gives its Host nothing but its own configurations.
const Config& own(const control::HostConfig& config) {
  return static_cast<const Config&>(config);
}

}  // namespace

Result<std::unique_ptr<Proxy>> Proxy::make(const Config& config, std::string file,
                                           control::HostNames& names, const Clock& clock,
                                           control::Predecessor* predecessor,
                                           net::Inherited* open) {
  const Result<net::Endpoint> listen = net::resolve_endpoint(config.listen);
  if (!listen) return fail("proxy.listen: " + listen.error().message);
  std::optional<net::Endpoint> upstream;
  if (config.upstream != kOriginal) {
    const Result<net::Endpoint> resolved = net::resolve_endpoint(config.upstream);
    if (!resolved) return fail("proxy.upstream: " + resolved.error().message);
    upstream = *resolved;
  }

  std::optional<control::Handed> handed;
  net::Inherited* const inherited = predecessor == nullptr ? open : &predecessor->inherited();
  if (predecessor != nullptr) handed.emplace(*inherited, predecessor->offered());
  Result<control::Live> live =
      control::Live::load(std::make_shared<const Config>(config), handed ? &*handed : nullptr);
  VPFS_TRY(live);
  const control::Processors processors = control::Processors::here();
  std::unique_ptr<Proxy> proxy(new Proxy(std::move(*live), std::move(file), names, clock,
                                         processors, std::move(upstream),
                                         handed ? &*handed : nullptr, inherited));
  proxy->predecessor_ = predecessor;
  if (!config.workers) {
    spdlog::info("{} for {}", control::counted(proxy->workers_.size(), "worker"),
                 control::counted(processors.count, "processor"));
  }
  VPFS_TRY(proxy->host_.lock_status_file());
  Result<net::Listener> listener =
      net::Listener::open(proxy->host_.context(), *listen,
                          net::Inherited::take_from(inherited, GivingProxy::kListener));
  if (!listener) return fail("proxy.listen: " + listener.error().message, listener.error().code);
  proxy->listener_ = std::make_unique<net::Listener>(std::move(*listener));
  VPFS_TRY(proxy->host_.open(net::to_string(proxy->local_endpoint())));
  proxy->giving_ =
      std::make_unique<GivingProxy>(GivingProxy::Parts{.host = proxy->host_,
                                                       .dispatcher = proxy->dispatcher_,
                                                       .shared = proxy->shared_,
                                                       .workers = proxy->workers_,
                                                       .listener = *proxy->listener_,
                                                       .clock = clock});
  VPFS_TRY(
      proxy->giving_->successor().open(control::restart_socket(config.restart, config), inherited));
  if (config.keep_over_crash) {
    proxy->shared_.keeper = ConnectionKeeper::make(config.limits.connections);
  }
  if (predecessor == nullptr) {
    if (open != nullptr) proxy->take_kept(*open);
    proxy->warn_of_silent_upstream();
  }
  return proxy;
}

Proxy::Proxy(control::Live live, std::string file, control::HostNames& names, const Clock& clock,
             const control::Processors& processors, std::optional<net::Endpoint> upstream,
             const control::Handed* handed, net::Inherited* inherited)
    : file_(file),
      shared_(clock, std::move(upstream)),
      dispatcher_(
          std::make_shared<const WorkerSettings>(
              control::with_stage(own(*live.file), live.state->composed().config)),
          worker_count(own(*live.file), processors.count),
          [this](std::size_t worker) { workers_[worker]->wake_up(); }, clock.now()),
      host_(*this, dispatcher_, std::move(live),
            {.name = kProgramName,
             .file = std::move(file),
             .names = names,
             .clock = clock,
             .handed = handed,
             .inherited = inherited}),
      drain_timer_(host_.context()),
      memory_timer_(host_.context()),
      keeper_timer_(host_.context()) {
  shared_.set_configured_hold(config().timeouts.hold, config().timeouts.hold_min);
  dispatcher_.set_hold(shared_.hold.load(), clock.now());
  if (!processors.has_quota) shared_.automatic_busy_poll = net::BusyPoll::kUsual;
  for (std::size_t i = 0; i < dispatcher_.workers(); ++i) {
    workers_.push_back(std::make_unique<Worker>(i, shared_, dispatcher_));
  }
}

Proxy::~Proxy() = default;

net::Endpoint Proxy::local_endpoint() const {
  return listener_->local_endpoint();
}

std::vector<std::pair<std::string, int>> Proxy::listeners() const {
  std::vector<std::pair<std::string, int>> all = host_.listeners();
  all.emplace_back(GivingProxy::kListener, listener_->native_handle());
  for (auto& each : giving_->successor().listeners()) all.push_back(std::move(each));
  if (shared_.keeper) {
    all.emplace_back(ConnectionKeeper::kJournalName, shared_.keeper->journal());
  }
  return all;
}

void Proxy::take_kept(net::Inherited& open) {
  KeptConnections kept = take_kept_connections(open, shared_.keeper != nullptr);
  if (kept.names.empty()) return;
  if (!kept.problem.empty()) {
    spdlog::warn("the journal of connections of the process before is not used: {}", kept.problem);
  }
  if (shared_.keeper) shared_.keeper->adopt(std::move(kept.names));
  for (KeptConnections::Connection& each : kept.connections) {
    workers_[next_worker_]->take_kept(each.state, std::move(each.client), std::move(each.server));
    next_worker_ = (next_worker_ + 1) % workers_.size();
  }
  spdlog::info("{} connections were kept over the end of the process before; {} sockets are closed",
               kept.connections.size(), kept.ended);
}

void Proxy::warn_of_silent_upstream() {
  if (!shared_.upstream) return;
  asio::io_context context(1);
  const auto look = [](Proxy& proxy) -> net::Task<> {
    const net::Endpoint server = *proxy.shared_.upstream;
    const Result<net::Socket> socket =
        co_await net::connect(server, std::min(proxy.config().timeouts.connect, kFirstPatience));
    if (socket) co_return;
    proxy.shared_.upstream_health.failed(server, socket.error().message, "",
                                         proxy.shared_.clock.now());
  };
  asio::co_spawn(context, look(*this), asio::detached);
  context.run();
}

void Proxy::run() {
  std::vector<std::jthread> threads;
  threads.reserve(workers_.size());
  for (const std::unique_ptr<Worker>& worker : workers_) {
    threads.emplace_back([&worker] { worker->run(); });
  }
  listener_->start([this](net::Socket socket) { accepted(std::move(socket)); });
  giving_->successor().start([this] { return config().restart; });
  if (predecessor_ != nullptr) {
    shared_.has_predecessor = true;
    predecessor_->receive_the_rest(
        {.parcel = [this](control::Predecessor::Parcel one) { take_late(std::move(one)); },
         .changes =
             [this](const SavedState& changes) {
               dispatcher_.act(shared_.clock.now(), [&](stage::Stage& stage, TimePoint now) {
                 stage.take_changes(changes, now);
               });
               shared_.restore_counters(changes.child("proxy"));
               workers_.front()->wake_up();
             },
         .end =
             [this](bool as_planned) {
               if (!as_planned)
                 spdlog::warn("the process before is gone, with what was left there");
               dispatcher_.act(shared_.clock.now(),
                               [&](stage::Stage& stage, TimePoint) { stage.vacate_predecessor(); });
               workers_.front()->wake_up();
               shared_.has_predecessor = false;
             }});
  }
  arm_memory();
  if (shared_.keeper) {
    shared_.keeper->start();
    arm_keeper();
  }
  host_.run();
  giving_->stop();
  if (predecessor_ != nullptr) predecessor_->stop();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->stop();
  threads.clear();
  host_.finish();
}

Result<void> Proxy::take_over() {
  const auto give_up = [this](const vpfs::Error& why) {
    predecessor_->tell_failure(why.message);
    return std::unexpected(why);
  };
  shared_.restore_learnt(predecessor_->offered().child("learnt"));
  if (const Result<void> ready = predecessor_->tell_ready(); !ready) return ready;
  Result<control::Predecessor::Everything> all = predecessor_->receive();
  if (!all) return give_up(all.error());
  const Result<void> taken = take_on(std::move(*all));
  if (!taken) return give_up(taken.error());
  return predecessor_->tell_taken();
}

Result<void> Proxy::take_on(control::Predecessor::Everything all) {
  const TimePoint now = shared_.clock.now();
  const SavedState& stage_state = all.state.child("stage");
  host_.take_on(all.state);
  shared_.restore_counters(all.state.child("proxy"));
  dispatcher_.act(now, [&](stage::Stage& stage, TimePoint at) { stage.restore(stage_state, at); });
  for (control::Predecessor::Parcel& each : all.parcels) {
    if (each.descriptors.size() != 2) return fail("a connection came without its descriptors");
    VPFS_TRY(workers_[next_worker_]->take(each.state, std::move(each.descriptors[0]),
                                          std::move(each.descriptors[1])));
    each.state = SavedState();  // held requests may be much
    next_worker_ = (next_worker_ + 1) % workers_.size();
  }
  // Requests queue up in the order of their arrival, whichever worker has them.
  std::vector<PendingIo*> held;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    const std::vector<PendingIo*> some = worker->take_arrivals();
    held.insert(held.end(), some.begin(), some.end());
  }
  std::ranges::sort(held, {}, [](const PendingIo* io) {
    return std::tuple(io->arrival, io->worker, io->number);
  });
  dispatcher_.arrive(held, now);
  dispatcher_.act(
      now, [&](stage::Stage& stage, TimePoint at) { stage.restore_schedulers(stage_state, at); });
  spdlog::info("took over {} connections with {} held requests", all.parcels.size(), held.size());
  return {};
}

// From the thread that receives them.
void Proxy::take_late(control::Predecessor::Parcel connection) {
  if (connection.descriptors.size() != 2) return;
  const std::size_t worker = next_late_++ % workers_.size();
  workers_[worker]->take_late(std::move(connection.state), std::move(connection.descriptors[0]),
                              std::move(connection.descriptors[1]));
}

void Proxy::upgrade(const std::string& binary, UpgradeDone done) {
  const std::array<std::string, 2> arguments = {"--config", file_};
  giving_->successor().start_program(binary, arguments, std::move(done));
}

bool Proxy::has_turned() {
  seen_turns_.resize(workers_.size());
  bool have_all = true;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::uint64_t turns = workers_[i]->turns();
    have_all &= std::exchange(seen_turns_[i], turns) != turns;
  }
  return have_all;
}

void Proxy::accepted(net::Socket socket) {
  Counters& counters = shared_.counters;
  std::error_code error;
  const net::Endpoint client = net::unmapped(socket.remote_endpoint(error));
  if (error) return;  // the client is gone
  if (counters.connections_open >= config().limits.connections) {
    if (counters.connections_refused++ == 0) {
      spdlog::error("limits.connections ({}) reached: client {} and others are refused",
                    config().limits.connections, net::to_string(client));
    }
    return;
  }
  const int descriptor = socket.release(error);
  if (error) return;
  ++counters.connections_open;
  ++counters.connections_total;
  workers_[next_worker_]->adopt(descriptor, client);
  next_worker_ = (next_worker_ + 1) % workers_.size();
}

std::shared_ptr<const control::HostConfig> Proxy::read(ConfigErrors& errors,
                                                       const control::HostConfig& running,
                                                       const stage::Names& names) {
  std::optional<Config> config =
      load_config_file(errors, &own(running), &names, running.plugin_loader);
  return config ? std::make_shared<const Config>(std::move(*config)) : nullptr;
}

std::vector<std::string> Proxy::use(const control::HostConfig& file, const stage::Config& stage) {
  const WorkerSettingsPtr before = dispatcher_.settings();
  dispatcher_.use(control::with_stage(own(file), stage), shared_.clock.now());
  const Timeouts& timeouts = config().timeouts;
  shared_.set_configured_hold(timeouts.hold, timeouts.hold_min);
  return changes(before->config, config());
}

std::string Proxy::status(const control::HostStatus& host) {
  return status_text(*dispatcher_.settings(), shared_, host);
}

void Proxy::describe(control::StatsReply& reply) {
  host_.describe(reply);
  reply.set_connections(shared_.counters.connections_open);
  reply.set_upstream(config().upstream);
}

void Proxy::list_clients(std::function<void(std::vector<control::Client>)> done) {
  struct Gathered {
    ClientList clients;
    std::size_t missing;
  };
  auto gathered = std::make_shared<Gathered>();  // shared by the answers of the workers
  gathered->missing = workers_.size();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    worker->list_connections([this, gathered, done](std::vector<ShownConnection> connections) {
      auto& context = host_.context();
      asio::post(context, [this, gathered, done, connections = std::move(connections)]() mutable {
        gathered->clients.add(std::move(connections));
        if (--gathered->missing > 0) return;
        done(gathered->clients.messages(dispatcher_, shared_.clock.now(), config()));
      });
    });
  }
}

void Proxy::drain(std::string_view why) {
  spdlog::info("{}: draining: {} requests held, {} at the data server", why, dispatcher_.queued(),
               dispatcher_.outstanding());
  listener_->close();
  shared_.draining.store(true);
  check_drained(shared_.clock.now() + config().timeouts.drain);
}

void Proxy::check_drained(TimePoint deadline) {
  const bool late = shared_.clock.now() >= deadline;
  if (shared_.counters.connections_open == 0 || late) {
    if (late) {
      spdlog::warn("drain: {} requests were not finished within {}", dispatcher_.outstanding(),
                   to_string(config().timeouts.drain));
    }
    host_.stop();
    return;
  }
  drain_timer_.expires_after(kDrainCheck);
  drain_timer_.async_wait([this, deadline](std::error_code error) {
    if (!error) check_drained(deadline);
  });
}

void Proxy::arm_keeper() {
  keeper_timer_.expires_after(kKeeperInterval);
  keeper_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    shared_.keeper->tell_some();
    arm_keeper();
  });
}

void Proxy::arm_memory() {
  memory_timer_.expires_after(SpareMemory::kInterval);
  memory_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    spare_memory_.look();
    arm_memory();
  });
}

}  // namespace vpfs::proxy
