#pragma once

#include <memory>

#include "base/result.h"
#include "control/admin/live_state.h"
#include "control/host/config.h"
#include "control/store/file_calls.h"

namespace vpfs::control {

// The configuration of a program's file and the live rules beside it. At the start the file's
// configuration is in force, with state->composed().config for its stage's part.
struct Live {
  // Opens the journal, if the configuration has one. Says in the log what an administrator should
  // know. The error names the key.
  [[nodiscard]] static Result<Live> load(std::shared_ptr<const HostConfig> file);

  std::shared_ptr<const HostConfig> file;  // its program may keep it too
  std::unique_ptr<FileCalls> calls;
  std::unique_ptr<LiveState> state;
};

}  // namespace vpfs::control
