#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/admin/host_names.h"
#include "control/admin/stage_access.h"
#include "control/wire/control.pb.h"
#include "stage/config/config.h"

namespace vpfs::control {

// What a proxy or a mount gives its Administration. All methods are called on the owner's thread.
class StageOwner {
 public:
  virtual ~StageOwner() = default;

  // Puts a configuration into force: its file's, with live rules and jobs.
  virtual void use(const stage::Config& config) = 0;
  virtual void set_bypass(bool on) = 0;
  // Reads the file again, and takes it on if LiveState::fits() it. Calls `done` on the owner's
  // thread with what changed, as lines.
  using Reloaded = std::function<void(Result<std::vector<std::string>> changed)>;
  virtual void reload(Reloaded done) = 0;
  // Looks names up without holding the owner's thread up, and calls `done` on it: Names of the
  // configuration then knows them. The problem is a sentence.
  virtual void look_up(const WantedNames& names,
                       std::function<void(std::optional<std::string> problem)> done) = 0;
  // Lets outstanding requests finish, then ends.
  virtual void drain() = 0;

  [[nodiscard]] virtual StageAccess& stage() = 0;
  // Its state as JSON, as the status file has it.
  [[nodiscard]] virtual std::string status() = 0;
  // Fills in what the stage does not know: name, connections, upstream, ...
  virtual void describe(StatsReply& reply) = 0;
  // Calls `done` on the owner's thread with all clients: those of one address together.
  virtual void list_clients(std::function<void(std::vector<Client>)> done) = 0;
};

}  // namespace vpfs::control
