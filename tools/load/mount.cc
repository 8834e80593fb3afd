#include "tools/load/mount.h"

#include <variant>

#include "tools/load/beegfs_mount.h"
#include "tools/load/orangefs_mount.h"

namespace vpfs::load {

std::unique_ptr<Mount> make_mount(const LoadSettings& settings,
                                  const ApplicationSettings& application, std::uint32_t node,
                                  const Clock& clock) {
  if (const auto* storage = std::get_if<client::StorageAddress>(&settings.mount)) {
    return std::make_unique<BeegfsMount>(*storage, settings, application.connections, node, clock);
  }
  const auto& address = std::get<client::MountAddress>(settings.mount);
  return std::make_unique<OrangefsMount>(address, settings, application, clock);
}

}  // namespace vpfs::load
