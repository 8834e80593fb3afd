#include "fuse/posix/directory_mount.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <system_error>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/result.h"
#include "base/utf8.h"
#include "base/version.h"
#include "control/host/status.h"
#include "fuse/posix/message_pipe.h"
#include "fuse/posix/node_addresses.h"
#include "fuse/posix/splice_pipe.h"
#include "schedulers/policy.h"

namespace vpfs::fuse {
namespace {

// How long threads may take to see that the mount is gone.
constexpr Duration kForTheLast = std::chrono::seconds(2);
// For how many users names are looked up per lock.
constexpr std::size_t kNamesAtOnce = 32;

constexpr std::size_t kMostUsersShown = 10;

std::string_view name_of(IoKind kind) {
  return kind == IoKind::read ? "read" : kind == IoKind::write ? "write" : "metadata";
}

// A mount within the directory that it shows would show itself, and ask itself without end. Over
// the directory itself it is right: what was opened before is below the mount.
bool lies_inside(const std::filesystem::path& place, const std::filesystem::path& source) {
  std::error_code error;
  const std::filesystem::path inner = std::filesystem::canonical(place, error);
  if (error || !std::filesystem::is_directory(inner, error)) return false;
  const std::filesystem::path outer = std::filesystem::canonical(source, error);
  if (error || inner == outer) return false;
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

void fill(control::Seen& seen, const IoGate::User& user, const Config& config) {
  const auto& classes = config.scheduler.classes.classes;
  if (user.traffic_class < classes.size()) seen.set_class_(classes[user.traffic_class].name);
  seen.set_jobid(valid_utf8(user.jobid));
  seen.set_job_from_registration(user.job_from_registration);
  seen.set_uid(user.uid);
  seen.set_kind(std::string(name_of(user.kind)));
  seen.set_requests(user.requests);
  if (user.job_not_registered) {
    seen.set_note("its job id is not registered for it, so it does not count");
  } else if (user.place.exempt) {
    seen.set_note("exempt");
  }
}

// Half of the descriptors may be pipes, one each.
std::size_t most_pipes() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 0;
}

const Config& own(const control::HostConfig& config) {
  return static_cast<const Config&>(config);
}

}  // namespace

Result<std::unique_ptr<DirectoryMount>> DirectoryMount::make(const MountOptions& options,
                                                             const Config& config,
                                                             control::HostNames& names,
                                                             const Clock& clock,
                                                             control::Predecessor* predecessor) {
  std::optional<control::Handed> handed;
  net::Inherited* const inherited = predecessor == nullptr ? nullptr : &predecessor->inherited();
  if (predecessor != nullptr) {
    handed.emplace(*inherited, predecessor->offered());
    VPFS_TRY(check_offer(predecessor->offered().child("mount"), options));
  }
  const control::Handed* const given = handed ? &*handed : nullptr;
  Result<control::Live> live = control::Live::load(std::make_shared<const Config>(config), given);
  VPFS_TRY(live);
  std::unique_ptr<DirectoryMount> mount(
      new DirectoryMount(options, std::move(*live), names, clock, given, inherited));
  mount->predecessor_ = predecessor;
  VPFS_TRY(mount->host_.lock_status_file());
  const PosixFileSystem::Options files = {.source = options.source,
                                          .entry_timeout = options.entry_timeout,
                                          .attribute_timeout = options.attribute_timeout,
                                          .acl = options.acl,
                                          .shared = options.point.allow_other};
  PosixFileSystem::Handed below;
  if (predecessor != nullptr) {
    below = {.root = inherited->take(GivingMount::kRoot),
             .has_acl = predecessor->offered().child("mount").number("has_acl") != 0};
  }
  auto opened =
      PosixFileSystem::open(files, mount->jobs_, clock, predecessor == nullptr ? nullptr : &below);
  VPFS_TRY(opened);
  mount->files_ = std::move(*opened);
  if (predecessor == nullptr && lies_inside(options.point.directory, options.source)) {
    return fail(fmt::format("{} is in {}, so it would show itself; mount elsewhere, or over {}",
                            options.point.directory, options.source, options.source));
  }
  VPFS_TRY(mount->host_.open(options.point.directory));
  VPFS_TRY(predecessor == nullptr
               ? mount->mount()
               : mount->take_mount(predecessor->offered().child("mount"), *inherited));
  mount->files_->set_direct_io(mount->mount_->has_direct_io());
  VPFS_TRY(mount->make_server(inherited));
  return mount;
}

Result<void> DirectoryMount::mount() {
  MountPoint::Options point_options = options_.point;
  // A write that is held stays in a pipe when memory is short.
  largest_write_ = MessagePipe::largest_write();
  if (largest_write_ > 0) point_options.largest_write = largest_write_;
  // As many as the protocol allows. Held requests count, and beyond the limit the kernel keeps
  // requests of all users back. So users share them. Without pipes they would take the memory.
  if (largest_write_ > 0 && ::geteuid() == 0) {
    point_options.most_background = UINT16_MAX;
    held_requests_ = UINT16_MAX;
  }
  // Reads of the page cache are spliced if a thread's pipe can hold them. The kernel reads ahead
  // twice as far for a process that has said that it reads in order.
  if (!SplicePipe::has_room_for(kLargestIo)) point_options.read_ahead = kLargestIo / 16 * 7;
  auto point = MountPoint::mount(point_options, PosixFileSystem::operations(), files_.get());
  VPFS_TRY(point);
  mount_ = std::move(*point);
  return {};
}

Result<void> DirectoryMount::make_server(net::Inherited* inherited) {
  const Server::Options options = {.threads = options_.threads,
                                   .schedules_metadata = config().schedule_metadata,
                                   .held_bytes = config().held_bytes,
                                   .held_pipes = largest_write_ > 0 ? most_pipes() : 0,
                                   .largest_write = largest_write_,
                                   .held_requests = held_requests_,
                                   .interrupts = options_.interrupts,
                                   .frozen = predecessor_ != nullptr};
  auto ended = [this] {
    unmounted_ = true;
    host_.stop();
  };
  Result<std::unique_ptr<Channel>> asks = mount_->add_channel(false);
  VPFS_TRY(asks);
  forgetter_ = std::make_unique<Forgetter>(files_->inodes(), std::move(*asks));
  files_->inodes().when_many_stay_open([this](uid_t user) { forgetter_->look_at(user); });
  Result<std::unique_ptr<Channel>> tells = mount_->add_channel(false);
  VPFS_TRY(tells);
  tells_ = std::move(*tells);
  files_->when_attributes_change([this](fuse_ino_t number) { tells_->attributes_changed(number); });
  server_ = std::make_unique<Server>(*mount_, *files_, gate_, clock_, options, std::move(ended));
  giving_ = std::make_unique<GivingMount>(GivingMount::Parts{.host = host_,
                                                             .gate = gate_,
                                                             .server = *server_,
                                                             .files = *files_,
                                                             .mount = *mount_,
                                                             .clock = clock_,
                                                             .constants = constants(),
                                                             .draining = draining_,
                                                             .has_predecessor = has_predecessor_});
  return giving_->successor().open(control::restart_socket(config().restart, config()), inherited);
}

DirectoryMount::DirectoryMount(const MountOptions& options, control::Live live,
                               control::HostNames& names, const Clock& clock,
                               const control::Handed* handed, net::Inherited* inherited)
    : options_(options),
      names_(names),
      clock_(clock),
      jobs_(options.jobs, clock),
      gate_(
          std::make_shared<const MountSettings>(
              control::with_stage(own(*live.file), live.state->composed().config)),
          [this](TimePoint by) { ask_by(by); }, std::random_device()(), clock.now()),
      host_(*this, gate_, std::move(live),
            {.name = kProgramName,
             .file = options.config,
             .names = names,
             .clock = clock,
             .handed = handed,
             .inherited = inherited}),
      question_timer_(host_.context()),
      drain_timer_(host_.context()) {}

DirectoryMount::~DirectoryMount() {
  if (mount_) mount_->unmount();
  giving_.reset();
  server_.reset();
  forgetter_.reset();
}

Result<void> DirectoryMount::start() {
  return predecessor_ == nullptr ? server_->start() : take_over();
}

void DirectoryMount::run() {
  giving_->successor().start([this] { return config().restart; });
  receive_the_rest();
  host_.run();
  giving_->successor().stop();
  if (predecessor_ != nullptr) predecessor_->stop();
  mount_->unmount();
  if (!unmounted_) {
    // Threads wait for the kernel as long as files are open, and nothing else ends them. After a
    // hand-over those that are left wait for the file system below.
    host_.finish();
    spdlog::shutdown();
    std::_Exit(0);
  }
  giving_.reset();
  server_.reset();
  host_.finish();
}

void DirectoryMount::ask_by(TimePoint time) {
  const std::int64_t wanted = time.time_since_epoch().count();
  std::int64_t now = asked_by_;
  while (wanted < now) {
    if (!asked_by_.compare_exchange_weak(now, wanted)) continue;
    asio::post(host_.context(), [this] { arm_question(); });
    return;
  }
}

void DirectoryMount::arm_question() {
  const TimePoint by = TimePoint(Duration(asked_by_.load()));
  const TimePoint now = clock_.now();
  question_timer_.expires_after(by <= now ? Duration::zero() : by - now);
  question_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    asked_by_ = INT64_MAX;
    if (server_) server_->ask_again();
  });
}

std::shared_ptr<const control::HostConfig> DirectoryMount::read(ConfigErrors& errors,
                                                                const control::HostConfig& running,
                                                                const stage::Names& names) {
  Node node = this_node();
  names_.set_own(std::move(node.names), std::move(node.addresses));
  std::optional<Config> config =
      load_config_file(errors, options_.control, &own(running), &names, running.plugin_loader);
  return config ? std::make_shared<const Config>(std::move(*config)) : nullptr;
}

std::vector<std::string> DirectoryMount::use(const control::HostConfig& file,
                                             const stage::Config& stage) {
  const MountSettingsPtr before = gate_.settings();
  gate_.use(control::with_stage(own(file), stage), clock_.now());
  if (server_) {
    server_->set_schedules_metadata(config().schedule_metadata);
    server_->held_memory().set_bound(config().held_bytes);
  }
  return changes(before->config, config());
}

std::string DirectoryMount::status(const control::HostStatus& host) {
  nlohmann::ordered_json status;
  status["program"] = "vpfs-mount";
  status["version"] = version();
  status["source"] = "posix:" + options_.source;
  status["directory"] = options_.point.directory;
  status["draining"] = draining();
  status["known_objects"] = files_->inodes().size();
  status["open_objects"] = files_->inodes().open_objects();
  status["open_files"] = files_->files().size();
  const Server::Load load = server_ ? server_->load() : Server::Load();
  status["busy_threads"] = load.busy;
  status["waiting_for_threads"] = load.waiting;
  status["held_write_bytes"] = server_ ? server_->held_memory().bytes() : 0;
  status["held_write_pipes"] = server_ ? server_->held_memory().pipes() : 0;
  status["users_out_of_threads"] = nlohmann::ordered_json::array();
  for (const ThreadQueue::User& each : load.users_that_wait) {
    if (status["users_out_of_threads"].size() == kMostUsersShown) break;
    status["users_out_of_threads"].push_back(
        {{"uid", each.uid}, {"threads", each.busy}, {"waiting", each.waiting}});
  }
  status["jobs_from"] = jobs_.source();
  status["jobs_not_registered"] = gate_.jobs_not_registered();
  control::add_reloads(status, host.reloads);
  control::add_stage(status, config(), host.snapshot);
  control::add_coordinator(status, host);
  return control::to_text(status);
}

void DirectoryMount::describe(control::StatsReply& reply) {
  host_.describe(reply);
  reply.set_connections(1);
  reply.set_upstream("posix:" + options_.source);
}

void DirectoryMount::list_clients(std::function<void(std::vector<control::Client>)> done) {
  const IoGate::Users users = gate_.users(clock_.now());
  control::Client client;
  client.set_address(options_.point.directory);
  client.set_connections(1);
  client.set_not_listed(users.others);
  client.set_requests_not_listed(users.requests_of_others);
  for (std::size_t first = 0; first < users.listed.size(); first += kNamesAtOnce) {
    const std::span group =
        std::span(users.listed).subspan(first, std::min(kNamesAtOnce, users.listed.size() - first));
    gate_.inspect(clock_.now(), [&](stage::Stage& stage, TimePoint) {
      const stage::VirtualPfsTable& all = stage.virtual_pfs();
      for (const IoGate::User& user : group) {
        control::Seen& seen = *client.add_seen();
        const bool is_there = all.is_there(user.place.id);
        seen.set_virtual_pfs(is_there ? all[user.place.id.app].info->name : "(retired)");
        if (const auto* const rule = stage.rules().row(user.place.rule)) seen.set_rule(*rule->name);
      }
    });
  }
  for (std::size_t i = 0; i < users.listed.size(); ++i) {
    fill(*client.mutable_seen(static_cast<int>(i)), users.listed[i], config());
  }
  std::vector<control::Client> all;
  if (!users.listed.empty()) all.push_back(std::move(client));
  done(std::move(all));
}

// Its threads may wait in the file system below for as long as that hangs. The gate, which all of
// them pass, waits for nothing.
bool DirectoryMount::has_turned() {
  (void)gate_.queued();
  return true;
}

void DirectoryMount::drain(std::string_view why) {
  if (has_left()) return host_.stop();  // the mount is another process's
  spdlog::info("{}: unmounting {}: {} requests held, {} under way", why, options_.point.directory,
               gate_.queued(), gate_.outstanding());
  draining_ = true;
  mount_->unmount();
  give_up_at(clock_.now() + std::max(config().drain, kForTheLast));
}

// Files that are open keep the file system alive behind its name.
void DirectoryMount::give_up_at(TimePoint deadline) {
  drain_timer_.expires_after(deadline - clock_.now());
  drain_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    spdlog::warn(
        "files were open for longer than mount.drain; processes that use them get ENOTCONN");
    host_.stop();
  });
}

}  // namespace vpfs::fuse
