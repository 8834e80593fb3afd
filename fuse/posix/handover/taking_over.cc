// The part of DirectoryMount that takes another process's place, and gives its own away.
#include <algorithm>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/result.h"
#include "fuse/posix/directory_mount.h"
#include "fuse/posix/message_pipe.h"

namespace vpfs::fuse {

namespace {

// The table of descriptors grows step by step, and a process with threads waits for each step. So
// it grows before the other process is frozen.
void make_room_for_descriptors(std::uint64_t count) {
  constexpr std::uint64_t kMore = 2048;  // those of this process, and what is opened meanwhile
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == 0) return;
  const std::uint64_t last = std::min<std::uint64_t>(count + kMore, limit.rlim_cur - 1);
  const net::Descriptor far(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC,
                                    static_cast<int>(std::min<std::uint64_t>(last, INT_MAX))));
}

}  // namespace

// The descriptors of the mount, and what the kernel has been told of it.
Result<void> DirectoryMount::take_mount(const SavedState& offered, net::Inherited& inherited) {
  if ((offered.number("has_handles") != 0) != files_->inodes().has_handles()) {
    return fail("one of the two processes opens objects by their handles, and the other may not");
  }
  auto point = MountPoint::take_over(options_.point, PosixFileSystem::operations(), files_.get(),
                                     {.device = inherited.take(GivingMount::kDevice),
                                      .unmounter = inherited.take(GivingMount::kUnmounter),
                                      .greeting = std::string(offered.text("greeting")),
                                      .options = std::string(offered.text("options"))});
  VPFS_TRY(point);
  mount_ = std::move(*point);
  largest_write_ = offered.number("largest_write");
  held_requests_ = offered.number("held_requests");
  if (MessagePipe::largest_write() < largest_write_) {
    return fail("this process may have no pipes as large as those of the running one");
  }
  return {};
}

Result<void> DirectoryMount::check_offer(const SavedState& offered, const MountOptions& options) {
  if (offered.text("source") == options.source &&
      offered.text("directory") == options.point.directory) {
    return {};
  }
  return fail(fmt::format("the running program shows {} at {}, and this one would show {} at {}",
                          offered.text("source"), offered.text("directory"), options.source,
                          options.point.directory));
}

SavedState DirectoryMount::constants() const {
  SavedState state;
  state.set("source", options_.source);
  state.set("directory", options_.point.directory);
  state.set("largest_write", std::uint64_t{largest_write_});
  state.set("held_requests", std::uint64_t{held_requests_});
  return state;
}

Result<void> DirectoryMount::take_parcel(control::Predecessor::Parcel parcel) {
  const std::string_view what = parcel.state.text("what");
  const bool is_of_server = what == "channels" || what == "data" || what == "requests";
  return is_of_server ? server_->take_on(parcel.state, std::move(parcel.descriptors))
                      : files_->restore(parcel.state, std::move(parcel.descriptors));
}

Result<void> DirectoryMount::take_over() {
  const auto give_up = [this](const vpfs::Error& why) {
    predecessor_->tell_failure(why.message);
    return std::unexpected(why);
  };
  gate_.freeze(true);
  make_room_for_descriptors(predecessor_->offered().child("mount").number("open"));
  if (const Result<void> early = predecessor_->receive_early(
          [this](control::Predecessor::Parcel each) { return take_parcel(std::move(each)); });
      !early) {
    return give_up(early.error());
  }
  VPFS_TRY(predecessor_->tell_ready());
  Result<control::Predecessor::Everything> all = predecessor_->receive();
  if (!all) return give_up(all.error());
  const Result<std::size_t> requests = take_on(std::move(*all));
  if (!requests) return give_up(requests.error());
  VPFS_TRY(predecessor_->tell_taken());
  mount_->take_charge();
  server_->thaw();
  // Not before: the log may be on this mount.
  spdlog::info("took over {} open files, {} known objects and {} held requests",
               files_->files().size(), files_->inodes().size(), *requests);
  return {};
}

Result<std::size_t> DirectoryMount::take_on(control::Predecessor::Everything all) {
  const SavedState& stage_state = all.state.child("stage");
  const SavedState& own = all.state.child("mount");
  host_.take_on(all.state);
  gate_.take_on(own.number("jobs_not_registered"));
  gate_.act(clock_.now(),
            [&](stage::Stage& stage, TimePoint at) { stage.restore(stage_state, at); });
  for (control::Predecessor::Parcel& each : all.parcels) VPFS_TRY(take_parcel(std::move(each)));
  const std::size_t requests = server_->take_on_requests(own);
  gate_.act(clock_.now(),
            [&](stage::Stage& stage, TimePoint at) { stage.restore_schedulers(stage_state, at); });
  // Its threads wait until this process is in charge.
  VPFS_TRY(server_->start());
  return requests;
}

void DirectoryMount::receive_the_rest() {
  if (predecessor_ == nullptr) return;
  has_predecessor_ = true;
  predecessor_->receive_the_rest(
      {.parcel = [](control::Predecessor::Parcel) {},
       .changes =
           [this](const SavedState& changes) {
             gate_.act(clock_.now(),
                       [&](stage::Stage& stage, TimePoint at) { stage.take_changes(changes, at); });
             server_->ask_again();
           },
       .end =
           [this](bool as_planned) {
             if (!as_planned) spdlog::warn("the process before is gone, with what was left there");
             gate_.act(clock_.now(),
                       [&](stage::Stage& stage, TimePoint) { stage.vacate_predecessor(); });
             server_->end_of_what_stayed();
             server_->ask_again();
             has_predecessor_ = false;
           }});
}

void DirectoryMount::upgrade(const std::string& binary, UpgradeDone done) {
  if (!giving_) return done(fail("this mount has not begun to serve yet"));
  std::vector<std::string> arguments = {"posix:" + options_.source, options_.point.directory, "-f"};
  for (const std::string& each : options_.lists) arguments.insert(arguments.end(), {"-o", each});
  giving_->successor().start_program(binary, arguments, std::move(done));
}

}  // namespace vpfs::fuse
