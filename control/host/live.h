#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "control/admin/history_keeper.h"
#include "control/admin/live_state.h"
#include "control/host/config.h"
#include "control/host/handed.h"
#include "control/host/kept_locks.h"

namespace vpfs::control {

// The configuration of a program's file, and the live rules and the history beside it. At the start
// the file's configuration is in force, with state->composed().config for its stage's part.
struct Live {
  // Opens the journal and the files of the history and the ledger, if the configuration has them.
  // Says in the log what an administrator should know. The error names the key.
  [[nodiscard]] static Result<Live> load(std::shared_ptr<const HostConfig> file) {
    return load(std::move(file), nullptr);
  }
  // The same in the place of another process, if any, which stops writing to its journals before.
  // Nothing is written until the caller does.
  [[nodiscard]] static Result<Live> load(std::shared_ptr<const HostConfig> file,
                                         const Handed* handed);

  std::shared_ptr<const HostConfig> file;  // its program may keep it too
  std::unique_ptr<KeptLocks> calls;
  std::unique_ptr<LiveState> state;
  HistoryKeeper::Kept history;
};

}  // namespace vpfs::control
