#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/allocation/cycle_types.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// What a member of a site said of itself besides.
struct MemberHello {
  std::vector<std::string> stage_addresses;
  control::MemberView view;  // the last one that it was told
};

// What a stage said of itself, and how it came.
struct StageHello {
  std::string name;
  std::string address;  // that was dialled, or whose it is: "uid 990", "CN=ds1 from 10.0.0.7"
  bool was_dialled = false;
  std::uint64_t incarnation = 0;
  std::uint64_t term = 0;  // of the last cycle that it applied
  std::string cost_model;
  std::string program;
  bool takes_caps = false;
  bool takes_metadata_caps = false;
  bool takes_elsewhere = false;
  bool takes_site = false;
  bool takes_users = false;  // requests on behalf of a user
  bool is_aggregator = false;
  std::shared_ptr<const MemberHello> member = {};  // null: it is not a member
};

// A stage of the configuration that is not connected.
struct AbsentStage {
  std::string name;
  std::string address;
  std::string problem;  // the last one
};

// Asks connected stages what is not of a cycle. Belongs to the coordinator's thread.
class StageRequests {
 public:
  // The answer to a request, or an Error. One whose place is kNotReached is not of the stage.
  using Done = std::function<void(const control::Envelope& answer)>;
  static constexpr const char* kNotReached = "stage";

  virtual ~StageRequests() = default;
  // `done` is called once, in a later turn. The number of the request is set here, and it is not
  // kept. REQUIRES (both): the stage is connected.
  virtual void ask(allocation::StageId stage, control::Envelope& request, Duration patience,
                   Done done) = 0;
  [[nodiscard]] virtual const StageHello& hello(allocation::StageId stage) const = 0;
  [[nodiscard]] virtual std::vector<AbsentStage> absent() const = 0;

  // Names of stages whose connection has ended a moment ago. None if they are very many.
  [[nodiscard]] virtual std::vector<std::string> just_left() const = 0;
  // Calls `back` once, in a later turn: after a stage of that name has joined again, or a second
  // later.
  using Back = std::function<void()>;
  virtual void wait_for(const std::string& name, Back back) = 0;
};

}  // namespace vpfs::coordinator
