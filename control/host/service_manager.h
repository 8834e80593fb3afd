#pragma once

#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/inherited.h"

namespace vpfs::control {

// What systemd, or another service manager, hears of a program: sd_notify(3) without its library.
// Everything here does nothing for a program that no manager has started.

// This process is the main one and serves. The open descriptors are for the manager to keep while
// the program does not run, in place of those that it has (FileDescriptorStoreMax). Names have no
// colon. A manager that is busy keeps the thread that is returned waiting, and nothing else.
[[nodiscard]] std::jthread tell_manager(
    const std::vector<std::pair<std::string, int>>& descriptors);
// Those that the manager has kept, by their names, at the start. Later calls find none.
[[nodiscard]] net::Inherited kept_by_manager();

}  // namespace vpfs::control
