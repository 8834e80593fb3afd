#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/saved/saved_state.h"
#include "control/handover/giver.h"
#include "control/handover/successor.h"
#include "control/host/host.h"
#include "fuse/mount_point.h"
#include "fuse/posix/files/file_system.h"
#include "fuse/posix/io_gate.h"
#include "fuse/posix/server.h"

namespace vpfs::fuse {

// What the mount of a directory hands over (docs/decisions/0068-hot-restart-of-mounts.md): the
// kernel's connection, what the kernel knows and has open, and what is held. Belongs to the main
// thread, but what GivingProgram has.
class GivingMount final : private control::GivingProgram {
 public:
  struct Parts {
    control::Host& host;
    IoGate& gate;
    Server& server;
    PosixFileSystem& files;
    MountPoint& mount;
    const Clock& clock;
    SavedState constants;  // of the mount, for the offer
    const std::atomic<bool>& draining;
    const std::atomic<bool>& has_predecessor;
  };
  // Names of descriptors in a hand-over.
  static constexpr const char* kDevice = "fuse.device";
  static constexpr const char* kUnmounter = "fuse.unmounter";
  static constexpr const char* kRoot = "fuse.root";

  // All outlive it.
  explicit GivingMount(Parts parts);
  ~GivingMount() { successor_.stop(); }
  GivingMount(const GivingMount&) = delete;
  GivingMount& operator=(const GivingMount&) = delete;

  [[nodiscard]] control::Successor& successor() { return successor_; }

 private:
  // From the thread of the hand-over.
  [[nodiscard]] control::Belongings offer() override;
  void withdraw() override;
  [[nodiscard]] std::vector<control::PackedParcel> early() override;
  void freeze() override;
  [[nodiscard]] std::size_t outstanding() override;
  [[nodiscard]] Result<std::vector<control::PackedParcel>> pack() override;
  [[nodiscard]] Result<SavedState> state(TimePoint end) override;
  void thaw() override;
  [[nodiscard]] std::string why_not() override;
  void leave(const control::HandedOver& done) override;
  [[nodiscard]] std::vector<control::PackedParcel> wait_for_more(Duration patience) override;
  [[nodiscard]] std::optional<SavedState> changes() override;
  [[nodiscard]] std::size_t left() override;
  [[nodiscard]] std::string_view kind_of_parts() const override { return "requests"; }
  // A call may wait below for as long as it would without the hand-over.
  [[nodiscard]] bool may_close_parts() const override { return false; }

  Parts parts_;
  ObjectPath root_;
  SavedState packed_;             // of the server
  control::Successor successor_;  // ends first
};

}  // namespace vpfs::fuse
