#include "control/host/live.h"

#include <string>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "base/system_clock.h"
#include "control/store/journal.h"

namespace vpfs::control {

Result<Live> Live::load(std::shared_ptr<const HostConfig> file) {
  const auto problem = [](const vpfs::Error& error) {
    return fail("control.journal: " + error.message, error.code);
  };
  Live live;
  live.file = std::move(file);
  live.calls = std::make_unique<FileCalls>();
  std::unique_ptr<StateStore> store;
  if (!live.file->journal.empty()) {
    auto journal = Journal::open(live.file->journal, *live.calls);
    if (!journal) return problem(journal.error());
    store = std::move(*journal);
  }
  std::vector<std::string> notes;
  auto state = LiveState::load(std::move(store), *live.file, wall_clock_now(), notes);
  if (!state) return problem(state.error());
  live.state = std::move(*state);
  for (const std::string& note : notes) log_answer(spdlog::level::warn, note);
  return live;
}

}  // namespace vpfs::control
