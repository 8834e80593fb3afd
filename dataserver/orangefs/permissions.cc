#include "dataserver/orangefs/permissions.h"

#include <algorithm>
#include <cerrno>

namespace vpfs::dataserver {

using orangefs::ObjectType;

bool is_member(const orangefs::Credential& credential, std::uint32_t group) {
  return std::ranges::find(credential.groups, group) != credential.groups.end();
}

Outcome<void> check_hinted(const orangefs::Request& request, std::uint32_t operations) {
  if (!permits(request.capability, operations)) return refuse(EACCES);
  const auto hint =
      std::ranges::find(request.hints, orangefs::HintType::handle, &orangefs::Hint::type);
  if (hint == request.hints.end()) return refuse(EINVAL);
  const std::vector<orangefs::Handle>& covered = request.capability.handles;
  const bool covers = std::ranges::find(covered, hint->number) != covered.end();
  return covers ? Outcome<void>() : refuse(EACCES);
}

std::uint32_t permitted_operations(const orangefs::Attributes& object,
                                   const orangefs::Credential& credential) {
  const std::uint32_t in_directory = orangefs::kCapCreate | orangefs::kCapRemove;
  const bool directory = object.type == ObjectType::directory;
  if (credential.uid == 0) return directory ? ~0U : ~in_directory;

  std::uint32_t bits = object.permissions & 07U;
  if (credential.uid == object.uid) {
    bits = object.permissions >> 6 & 07U;
  } else if (is_member(credential, object.gid)) {
    bits = object.permissions >> 3 & 07U;
  }
  static_assert(orangefs::kCapExecute == 1 && orangefs::kCapWrite == 2 && orangefs::kCapRead == 4);
  std::uint32_t operations = bits;
  if (credential.uid == object.uid) operations |= orangefs::kCapSetattr;
  const std::uint32_t search_and_write = orangefs::kCapExecute | orangefs::kCapWrite;
  if (directory && (bits & search_and_write) == search_and_write) operations |= in_directory;
  return operations;
}

}  // namespace vpfs::dataserver
