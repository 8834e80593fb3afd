#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/inherited.h"

namespace vpfs::control {

// What systemd, or another service manager, hears of a program: sd_notify(3) without its library.
// Everything here does nothing for a program that no manager has started.

// This process is the main one and serves.
void tell_manager_ready();
// Open descriptors for the manager to keep while the program does not run, in place of those that
// it has (FileDescriptorStoreMax). Names have no colon.
void store_at_manager(const std::vector<std::pair<std::string, int>>& descriptors);
// Those that the manager has kept, by their names, at the start. Later calls find none.
[[nodiscard]] net::Inherited kept_by_manager();

}  // namespace vpfs::control
