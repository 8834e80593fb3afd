#pragma once

namespace vpfs::coordinator {

// What a coordinator does at a signal that does not end it, whether it leads or not: it opens its
// log anew at SIGUSR2, and says that SIGHUP and SIGUSR1 are of other programs. False: the signal
// ends it.
[[nodiscard]] bool goes_on_after(int signal);

}  // namespace vpfs::coordinator
