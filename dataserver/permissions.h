#pragma once

#include <cstdint>

#include "protocols/pvfs2/errors.h"
#include "protocols/pvfs2/message.h"

namespace vpfs::dataserver {

// Which operations (kCap... bits) the bearer of `credential` may do with an object: what the
// capability in a GETATTR response says. Root may do everything that fits the type; the owner may
// set attributes; write and search permission on a directory permit to create and remove in it.
[[nodiscard]] std::uint32_t permitted_operations(const pvfs2::Attributes& object,
                                                 const pvfs2::Credential& credential);

// Whether a capability carries all of these bits.
[[nodiscard]] inline bool permits(const pvfs2::Capability& capability, std::uint32_t operations) {
  return (capability.op_mask & operations) == operations;
}

// For operations whose capability speaks of another object than the request's handle (IO: of the
// metafile; REMOVE: of the parent directory): that object is named by the handle hint. EINVAL
// without the hint; EACCES when the capability does not cover it or does not permit `operations`.
[[nodiscard]] pvfs2::Status check_hinted(const pvfs2::Request& request, std::uint32_t operations);

[[nodiscard]] bool is_member(const pvfs2::Credential& credential, std::uint32_t group);

}  // namespace vpfs::dataserver
