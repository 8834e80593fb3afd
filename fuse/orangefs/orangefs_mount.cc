#include "fuse/orangefs/orangefs_mount.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/result.h"
#include "base/signal_block.h"

namespace vpfs::fuse::pvfs {
namespace {

// How long files that are open may keep an unmount from ending.
constexpr Duration kDrain = std::chrono::seconds(20);
// How long requests whose processes are gone may go on when the mount is gone.
constexpr Duration kForTheLast = std::chrono::seconds(2);
constexpr Duration kLookForEnd = std::chrono::milliseconds(20);
constexpr std::size_t kCachedEntries = 65536;

client::SessionOptions session_options(const MountOptions& options,
                                       const std::shared_ptr<client::Caches>& caches) {
  client::SessionOptions session;
  session.connections = options.connections;
  session.caller.uid = ::geteuid();
  session.caller.gid = ::getegid();
  session.retry_for = options.retry_for;
  session.caches = caches;
  return session;
}

// Whether users share the mount. Only root's gets more of the kernel's requests than others.
bool is_shared(const MountOptions& options) {
  return options.point.allow_other && ::geteuid() == 0;
}

HeldIo::Bounds bounds_for(const MountOptions& options) {
  if (!is_shared(options)) return {};
  return {.requests = UINT16_MAX, .bytes = background_memory()};
}

}  // namespace

OrangefsMount::OrangefsMount(const MountOptions& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      jobs_(options.jobs, clock),
      signals_(context_, SIGTERM, SIGINT, SIGUSR2),
      timer_(context_),
      heartbeat_(context_, [this] { return has_turned(); }),
      held_(bounds_for(options)) {}

Result<std::unique_ptr<OrangefsMount>> OrangefsMount::make(const MountOptions& options,
                                                           const Clock& clock) {
  std::unique_ptr<OrangefsMount> mount(new OrangefsMount(options, clock));
  VPFS_TRY(mount->connect(clock));
  const OrangefsFileSystem::Options files = {.entry_timeout = options.entry_timeout,
                                             .attribute_timeout = options.attribute_timeout,
                                             .local_locks = options.local_locks,
                                             .layout = options.layout,
                                             .virtual_pfs = options.virtual_pfs};
  const client::MountConfig& config = mount->workers_.front()->session().config();
  if (const Result<void> good = Placement::check(options.layout, config); !good) {
    return fail(fmt::format("-o layout: {}", good.error().message));
  }
  mount->files_ =
      std::make_unique<OrangefsFileSystem>(files, config, options.workers, mount->jobs_, clock);
  MountPoint::Options point_options = options.point;
  // As many as the protocol allows. Beyond them the kernel keeps requests of all users back.
  if (is_shared(options)) point_options.most_background = UINT16_MAX;
  Result<std::unique_ptr<MountPoint>> point =
      MountPoint::mount(point_options, mount->files_->operations(), mount->files_.get());
  VPFS_TRY(point);
  mount->mount_ = std::move(*point);
  mount->files_->set_direct_io(mount->mount_->has_direct_io());
  return mount;
}

Result<void> OrangefsMount::connect(const Clock& clock) {
  const auto caches = std::make_shared<client::Caches>(options_.attribute_timeout,
                                                       options_.entry_timeout, kCachedEntries);
  for (std::size_t i = 0; i < options_.workers; ++i) {
    auto worker = std::make_unique<MountWorker>(i);
    worker->set_busy_poll(options_.busy_poll.value_or(Duration::zero()));
    const Result<void> connected =
        worker->connect(*options_.address, session_options(options_, caches), clock);
    if (!connected) return connected;
    workers_.push_back(std::move(worker));
  }
  return {};
}

OrangefsMount::~OrangefsMount() {
  if (mount_) mount_->unmount();
  // All threads end before what they share goes.
  MountWorker::stop(workers_);
  files_.reset();
}

Result<void> OrangefsMount::start() {
  const std::function<void()> ended = [this] {
    asio::post(context_, [this] {
      if (!std::exchange(ended_, true)) finish_by(clock_.now() + kForTheLast);
    });
  };
  std::vector<std::unique_ptr<Channel>> channels;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Result<std::unique_ptr<Channel>> channel = mount_->add_channel(true);
    VPFS_TRY(channel);
    channels.push_back(std::move(*channel));
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->prepare(*files_, held_, std::move(channels[i]), options_.interrupts, workers_,
                         ended);
  }
  for (const std::unique_ptr<MountWorker>& worker : workers_) {
    VPFS_TRY(worker->start());
  }
  return {};
}

void OrangefsMount::run() {
  // There is nothing to reload, no terminal to lose, and no status file.
  for (const int signal : {SIGHUP, SIGUSR1}) (void)std::signal(signal, SIG_IGN);
  let_in_asking_signals();
  await_signal();
  heartbeat_.start();
  context_.run();
  if (ended_) return;
  // Processes have files open, and nothing else ends what waits for them.
  spdlog::shutdown();
  std::_Exit(0);
}

void OrangefsMount::await_signal() {
  signals_.async_wait([this](std::error_code error, int signal) {
    if (error) return;
    if (signal != SIGUSR2) return drain();
    reopen_log();
    await_signal();
  });
}

bool OrangefsMount::has_turned() {
  bool have_all = true;
  for (const std::unique_ptr<MountWorker>& worker : workers_) have_all &= worker->has_turned();
  return have_all;
}

void OrangefsMount::drain() {
  heartbeat_.ending();
  spdlog::info("unmounting {}", options_.point.directory);
  mount_->unmount();
  timer_.expires_after(kDrain);
  timer_.async_wait([this](std::error_code error) {
    if (error) return;
    spdlog::warn("files were open for longer than {} s; processes that use them get ENOTCONN",
                 std::chrono::duration_cast<std::chrono::seconds>(kDrain).count());
    context_.stop();
  });
}

void OrangefsMount::finish_by(TimePoint deadline) {
  const bool busy = std::ranges::any_of(workers_, [](const std::unique_ptr<MountWorker>& worker) {
    return worker->operations() > 0;
  });
  if (!busy || clock_.now() >= deadline) return context_.stop();
  timer_.expires_after(kLookForEnd);
  timer_.async_wait([this, deadline](std::error_code error) {
    if (!error) finish_by(deadline);
  });
}

}  // namespace vpfs::fuse::pvfs
