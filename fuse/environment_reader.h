#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <sys/types.h>

#include "base/clock.h"

namespace vpfs::fuse {

// Reads the environments of processes, and waits for each only so long. Linux makes a reader wait
// while the process changes its memory. A user who means harm can have that take for ever, and a
// request that waits here may keep a directory from all users. So threads of its own read. They are
// started when they are needed, and users share them: one that waits for a process does so until
// the process lets it go. Thread-safe.
class EnvironmentReader {
 public:
  // `processes` is where the kernel shows them. The clock outlives it.
  EnvironmentReader(std::string processes, Duration patience, const Clock& clock);
  // Waits for no thread. REQUIRES: read() is not under way.
  ~EnvironmentReader();
  EnvironmentReader(const EnvironmentReader&) = delete;
  EnvironmentReader& operator=(const EnvironmentReader&) = delete;

  // What environment_of() says in the place of the process's user. Nothing: not in time. Then the
  // next one of the same user has half the time, and so on, until all were in time for ten seconds.
  [[nodiscard]] std::optional<std::string> read(pid_t process, uid_t uid, gid_t gid);

 private:
  struct Question;
  struct Shared;
  // When a user's processes were waited for in vain.
  struct InVain {
    unsigned times = 0;
    TimePoint until;  // then it is forgotten
  };

  static void run(Shared& shared);
  // REQUIRES of these: the lock of what is shared.
  void see_to_a_thread();
  [[nodiscard]] InVain& in_vain_of(uid_t uid, TimePoint now);

  const Duration patience_;
  const Clock& clock_;
  const std::shared_ptr<Shared> shared_;  // with its threads, which may outlive it
  std::unordered_map<uid_t, InVain> in_vain_;
};

}  // namespace vpfs::fuse
