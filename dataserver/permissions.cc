#include "dataserver/permissions.h"

#include <algorithm>
#include <cerrno>

namespace vpfs::dataserver {

using pvfs2::ObjectType;

bool is_member(const pvfs2::Credential& credential, std::uint32_t group) {
  return std::ranges::find(credential.groups, group) != credential.groups.end();
}

pvfs2::Status check_hinted(const pvfs2::Request& request, std::uint32_t operations) {
  if (!permits(request.capability, operations)) return pvfs2::status_from_errno(EACCES);
  const auto hint = std::ranges::find(request.hints, pvfs2::HintType::handle, &pvfs2::Hint::type);
  if (hint == request.hints.end()) return pvfs2::status_from_errno(EINVAL);
  const std::vector<pvfs2::Handle>& covered = request.capability.handles;
  const bool covers = std::ranges::find(covered, hint->number) != covered.end();
  return covers ? 0 : pvfs2::status_from_errno(EACCES);
}

std::uint32_t permitted_operations(const pvfs2::Attributes& object,
                                   const pvfs2::Credential& credential) {
  const std::uint32_t in_directory = pvfs2::kCapCreate | pvfs2::kCapRemove;
  const bool directory = object.type == ObjectType::directory;
  if (credential.uid == 0) return directory ? ~0U : ~in_directory;

  std::uint32_t bits = object.permissions & 07U;
  if (credential.uid == object.uid) {
    bits = object.permissions >> 6 & 07U;
  } else if (is_member(credential, object.gid)) {
    bits = object.permissions >> 3 & 07U;
  }
  static_assert(pvfs2::kCapExecute == 1 && pvfs2::kCapWrite == 2 && pvfs2::kCapRead == 4);
  std::uint32_t operations = bits;
  if (credential.uid == object.uid) operations |= pvfs2::kCapSetattr;
  const std::uint32_t search_and_write = pvfs2::kCapExecute | pvfs2::kCapWrite;
  if (directory && (bits & search_and_write) == search_and_write) operations |= in_directory;
  return operations;
}

}  // namespace vpfs::dataserver
