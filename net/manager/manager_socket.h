#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/descriptor.h"

namespace vpfs::net {

// The socket of systemd, or of another service manager: sd_notify(3) without its library. The
// manager's queue is short.
class ManagerSocket {
 public:
  // Nothing: no manager has started this program.
  [[nodiscard]] static std::optional<ManagerSocket> of_environment();

  static constexpr std::size_t kMostDescriptors = 2;  // of one message

  // False: it takes no more, or is not there (errno). REQUIRES: at most kMostDescriptors.
  [[nodiscard]] bool try_to_tell(std::string_view text,
                                 std::span<const int> descriptors = {}) const;
  // Tries again while it takes no more, after each of the waits that are left.
  [[nodiscard]] bool tell(std::string_view text, std::span<const int> descriptors, int& waits,
                          const std::stop_token& stop) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit ManagerSocket(std::string path);

  std::string path_;
  Descriptor socket_;
};

// How many descriptors the manager keeps for this program (FDSTORE of its environment, which
// systemd sets since version 254, and a unit can set for an older one); 0: it does not say.
[[nodiscard]] std::size_t most_stored();

// The main process serves: READY=1.
[[nodiscard]] std::string ready_words();

// For the process that another one takes the place of, before it ends.
void tell_main_process(int pid);

// How often the manager wants to hear that the program is alive (WatchdogSec); nothing: it does not
// ask. `takes_over`: it may have asked the process whose place this one takes.
[[nodiscard]] std::optional<Duration> watchdog_period(bool takes_over);

}  // namespace vpfs::net
