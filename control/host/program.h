#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "base/result.h"
#include "control/host/config.h"
#include "control/host/status.h"
#include "control/wire/control.pb.h"
#include "stage/rules/names.h"

namespace vpfs::control {

// What only the program with a stage can do, because it depends on how its I/O is done. Host and
// Administration call it on the Host's thread; any thread may call draining(). Changes of rules go
// to the gate instead. A HostConfig that the Host gives back is always one that it
// was given at the start or by read(), so the program knows its type.
class Program {
 public:
  virtual ~Program() = default;

  // Reads and checks its configuration file. `running` is the file's content that is in force; a
  // change that needs a restart is an error. Null: `errors` has at least one.
  [[nodiscard]] virtual std::shared_ptr<const HostConfig> read(ConfigErrors& errors,
                                                               const HostConfig& running,
                                                               const stage::Names& names) = 0;
  // Puts the file's configuration into force after a reload, with `stage` for its stage's part:
  // that has the live rules. Its gate too. Must not fail. Returns what that changed, one sentence
  // each.
  [[nodiscard]] virtual std::vector<std::string> use(const HostConfig& file,
                                                     const stage::Config& stage) = 0;

  // Its state as JSON, as the status file has it (see status.h).
  [[nodiscard]] virtual std::string status(const HostStatus& host) = 0;
  // Fills in what the stage does not know: Host::describe(), connections and upstream.
  virtual void describe(StatsReply& reply) = 0;
  // Calls `done` on the Host's thread with all clients: those of one address together.
  virtual void list_clients(std::function<void(std::vector<Client>)> done) = 0;

  // Takes no new requests, lets outstanding ones finish, and then calls Host::stop(). Called once.
  virtual void drain(std::string_view why) = 0;
  // Starts a program that takes over; `binary`: another file than this program's, or "". Calls
  // `done` on the Host's thread with how it went.
  using UpgradeDone = std::function<void(Result<std::string> outcome)>;
  virtual void upgrade(const std::string& /*binary*/, UpgradeDone done) {
    done(fail("this program cannot hand its connections over"));
  }
  // Whether each thread that serves has turned since the last call, some seconds ago. A service
  // manager ends a program of which that is not so.
  [[nodiscard]] virtual bool has_turned() { return true; }
  // Whether it serves all the same while the Host's thread waits, as for a disk, so that it must
  // not be ended then. has_turned() is called by another thread in that case, during Host::run().
  [[nodiscard]] virtual bool serves_by_itself() const { return false; }
  // Whether drain() was called. Any thread.
  [[nodiscard]] virtual bool draining() const = 0;
};

}  // namespace vpfs::control
