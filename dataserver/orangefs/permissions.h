#pragma once

#include <cstdint>

#include "dataserver/store/outcome.h"
#include "protocols/orangefs/message.h"

namespace vpfs::dataserver {

// Which operations (kCap... bits) the bearer of `credential` may do with an object: what the
// capability in a GETATTR response says. Root may do everything that fits the type; the owner may
// set attributes; write and search permission on a directory permit to create and remove in it.
[[nodiscard]] std::uint32_t permitted_operations(const orangefs::Attributes& object,
                                                 const orangefs::Credential& credential);

// Whether a capability carries all of these bits.
[[nodiscard]] inline bool permits(const orangefs::Capability& capability,
                                  std::uint32_t operations) {
  return (capability.op_mask & operations) == operations;
}

// For operations whose capability is about another object than the request's handle (IO: the
// metafile; REMOVE: the parent directory). The handle hint names that object. EINVAL without the
// hint; EACCES when the capability does not cover the object or permit `operations`.
[[nodiscard]] Outcome<void> check_hinted(const orangefs::Request& request,
                                         std::uint32_t operations);

[[nodiscard]] bool is_member(const orangefs::Credential& credential, std::uint32_t group);

}  // namespace vpfs::dataserver
