#pragma once

#include <memory>

#include "base/result.h"
#include "control/admin/history_keeper.h"
#include "control/admin/live_state.h"
#include "control/host/config.h"
#include "control/store/file_calls.h"

namespace vpfs::control {

// The configuration of a program's file, and the live rules and the history beside it. At the start
// the file's configuration is in force, with state->composed().config for its stage's part.
struct Live {
  // Opens the journal and the files of the history and the ledger, if the configuration has them.
  // Says in the log what an administrator should know. The error names the key.
  [[nodiscard]] static Result<Live> load(std::shared_ptr<const HostConfig> file);

  std::shared_ptr<const HostConfig> file;  // its program may keep it too
  std::unique_ptr<FileCalls> calls;
  std::unique_ptr<LiveState> state;
  HistoryKeeper::Kept history;
};

}  // namespace vpfs::control
