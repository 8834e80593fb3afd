#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/device_model.h"
#include "base/units.h"
#include "sim/engine/engine.h"
#include "stage/stage.h"

namespace vpfs::sim {

// A data server behind a proxy, in virtual time: the stage that a proxy has, as it is, and the
// device model of the embedded server.
//
//   arrive() ──> Stage ──release──> device, piece by piece ──> Callbacks::done
class ProxiedServer {
 public:
  struct Settings {
    DeviceSettings device;  // the bandwidth is not zero
    // The data of a request pass the device in pieces of this size, between those of others, as the
    // flow buffers of an OrangeFS server do. Not zero.
    Bytes piece = {256 * kKiB};
  };
  // A request, of its owner until Callbacks::done. The stage's own fields are set as arrive() of a
  // Stage has it.
  struct Request : stage::Held {
    std::uint64_t id = 0;  // the owner's own
    Bytes left = {};       // not served yet
    Duration held = {};    // in the stage, once it was released
  };
  struct Callbacks {
    std::function<void(Request&)>
        done;  // the device has served it; the request is the owner's again
  };

  // `engine` outlives it. Limits of single clients are not modelled.
  ProxiedServer(Engine& engine, const stage::Config& config, Settings settings,
                Callbacks callbacks);
  ProxiedServer(const ProxiedServer&) = delete;
  ProxiedServer& operator=(const ProxiedServer&) = delete;

  void arrive(Request& request);
  // A cycle of a coordinator has come. Returns whether the stage applied it.
  bool allocate(const stage::Cycle& cycle, std::span<const stage::Allocation> allocations);
  [[nodiscard]] stage::Stage& stage() { return stage_; }

 private:
  // Lets go what may go, and comes back when the stage wants it.
  void pump();
  void serve_piece(Request& request, bool is_first);
  void finish(Request& request);

  Engine& engine_;
  stage::Stage stage_;
  DeviceModel device_;
  Bytes piece_;
  Callbacks callbacks_;
  std::vector<stage::Held*> let_go_;
  Engine::EventId wake_ = {};
  TimePoint wake_at_ = kNever;  // kNever: no wake_ is pending
};

}  // namespace vpfs::sim
