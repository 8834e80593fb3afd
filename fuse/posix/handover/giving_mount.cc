#include "fuse/posix/handover/giving_mount.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <poll.h>

#include "base/result.h"
#include "fuse/posix/config.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using control::PackedParcel;

// How long calls that open or look something up may take to end while nothing else goes.
constexpr Duration kLongestCall = 1s;
constexpr int kLookMilliseconds = 1;

void append(std::vector<PackedParcel>& parcels, std::vector<PosixFileSystem::SavedPart> parts) {
  for (PosixFileSystem::SavedPart& each : parts) {
    parcels.push_back({.state = std::move(each.state),
                       .descriptors = std::move(each.descriptors),
                       .keeps = std::move(each.keeps)});
  }
}

}  // namespace

GivingMount::GivingMount(Parts parts)
    : parts_(std::move(parts)),
      successor_({.context = parts_.host.context(),
                  .program = *this,
                  .clock = parts_.clock,
                  .role = kProgramName.role,
                  .end = [&host = parts_.host] { host.stop(); }}) {}

control::Belongings GivingMount::offer() {
  control::Belongings belongings;
  successor_.on_main([&] {
    control::Host::Offer offer = parts_.host.offer();
    belongings.state = std::move(offer.state);
    belongings.descriptors = std::move(offer.descriptors);
    for (auto& each : successor_.listeners()) belongings.descriptors.push_back(std::move(each));
  });
  const MountPoint::Offer mount = parts_.mount.offer();
  root_ = parts_.files.root_path();
  belongings.descriptors.emplace_back(kDevice, mount.device);
  belongings.descriptors.emplace_back(kRoot, root_->get());
  if (mount.unmounter >= 0) belongings.descriptors.emplace_back(kUnmounter, mount.unmounter);
  SavedState& own = belongings.state.add_list("mount").emplace_back(parts_.constants);
  own.set("greeting", mount.greeting);
  own.set("options", mount.options);
  own.set("has_acl", std::uint64_t{parts_.files.has_acl()});
  own.set("open", std::uint64_t{parts_.files.files().size() + parts_.files.directories().size()});
  own.set("has_handles", std::uint64_t{parts_.files.inodes().has_handles()});
  return belongings;
}

void GivingMount::withdraw() {
  (void)parts_.files.inodes().take_changes();
  parts_.server.drop_copies();
  successor_.on_main([this] { parts_.host.withdraw(); });
}

// Most of what the kernel knows, and of what is held, does not change until the freeze.
std::vector<PackedParcel> GivingMount::early() {
  std::vector<PackedParcel> parcels;
  append(parcels, parts_.files.save_objects(parts_.files.inodes().note_changes()));
  parts_.server.copy_held_data();
  return parcels;
}

void GivingMount::freeze() {
  parts_.server.freeze();
}

std::size_t GivingMount::outstanding() {
  if (successor_.stopping()) return 0;
  const bool settled = parts_.server.settle();
  return parts_.server.load().busy + (settled ? 0 : 1);
}

Result<std::vector<PackedParcel>> GivingMount::pack() {
  const TimePoint end = parts_.clock.now() + kLongestCall;
  while (!parts_.server.settle()) {
    if (parts_.clock.now() >= end || successor_.stopping()) {
      return fail(
          "calls that open, look up or release something in the directory below take too "
          "long: try again when it answers");
    }
    (void)::poll(nullptr, 0, kLookMilliseconds);
  }
  std::vector<PackedParcel> parcels;
  std::vector<std::uint64_t> changed = parts_.files.inodes().take_changes();
  std::vector<PosixFileSystem::SavedPart> objects = parts_.files.save_objects(changed);
  PackedParcel& gone = parcels.emplace_back();
  gone.state.set("what", "changed");
  gone.state.set("nodes", std::move(changed));
  append(parcels, std::move(objects));
  append(parcels, parts_.files.save_open());
  packed_ = SavedState();
  Result<std::vector<PackedParcel>> requests = parts_.server.pack(packed_);
  VPFS_TRY(requests);
  std::ranges::move(*requests, std::back_inserter(parcels));
  return parcels;
}

Result<SavedState> GivingMount::state(TimePoint end) {
  SavedState state;
  if (!successor_.on_main([&] { parts_.host.save(state); }, end)) {
    return fail("the main thread is busy, as with a disk that does not answer");
  }
  packed_.set("jobs_not_registered", parts_.gate.jobs_not_registered());
  state.add_list("mount").push_back(std::move(packed_));
  SavedState stage;
  parts_.gate.inspect(parts_.clock.now(),
                      [&](stage::Stage& of, TimePoint now) { stage = of.save(now); });
  state.add_list("stage").push_back(std::move(stage));
  return state;
}

void GivingMount::thaw() {
  parts_.server.thaw();
}

std::string GivingMount::why_not() {
  if (successor_.stopping() || parts_.draining) return "the mount is about to end";
  return "";
}

void GivingMount::leave(const control::HandedOver& done) {
  successor_.note_leaving();
  parts_.mount.leave();
  const std::size_t held = parts_.gate.queued();
  parts_.server.leave();
  successor_.on_main([&] {
    successor_.leave(
        fmt::format("process {} has taken over: {} open files, {} known objects and {} held "
                    "requests within {:.1f} ms; {} requests more end here",
                    done.pid, parts_.files.files().size(), parts_.files.inodes().size(), held,
                    in_seconds(done.paused) * 1000, left()));
    parts_.host.leave();
  });
}

// What has stayed ends here.
std::vector<PackedParcel> GivingMount::wait_for_more(Duration patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  (void)::poll(nullptr, 0, static_cast<int>(milliseconds));
  return {};
}

std::optional<SavedState> GivingMount::changes() {
  std::optional<SavedState> changes;
  parts_.gate.inspect(parts_.clock.now(),
                      [&](stage::Stage& of, TimePoint now) { changes = of.save_changes(now); });
  return changes;
}

std::size_t GivingMount::left() {
  if (successor_.stopping()) return 0;
  const Server::Load load = parts_.server.load();
  // What the process before counts comes here, and goes on to the next one.
  return load.busy + load.waiting + (parts_.has_predecessor ? 1 : 0);
}

}  // namespace vpfs::fuse
