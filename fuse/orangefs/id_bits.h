#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "client/orangefs/calls/caller.h"
#include "client/orangefs/stat.h"
#include "net/async.h"
#include "protocols/orangefs/basic_types.h"

// The set-user-id and set-group-id bits of a file do not outlive a change of its contents by a user
// other than root, nor a change of its owner or group by anyone.
namespace vpfs::fuse::pvfs {

class MountWorker;

// What such a change leaves of the mode; nothing: it stays as it is.
[[nodiscard]] std::optional<std::uint32_t> mode_after_change(const client::Stat& object);

// Clears the bits if the file has them, which `caller` has changed.
[[nodiscard]] net::Task<Result<void>> clear_id_bits(MountWorker& worker, client::CallerPtr caller,
                                                    orangefs::Handle handle);

}  // namespace vpfs::fuse::pvfs
