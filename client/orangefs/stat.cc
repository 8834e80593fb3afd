#include "client/orangefs/stat.h"

#include <algorithm>

#include "client/orangefs/object.h"

namespace vpfs::client {

Stat stat_from(orangefs::Handle handle, const orangefs::Attributes& attributes) {
  Stat stat{.handle = handle,
            .type = attributes.type,
            .uid = attributes.uid,
            .gid = attributes.gid,
            .permissions = attributes.permissions & 07777U,
            .atime = attributes.atime,
            .mtime = attributes.mtime,
            .ctime = attributes.ctime};
  if (attributes.type == orangefs::ObjectType::symlink) {
    stat.size = attributes.symlink_target.size();
  } else if (attributes.type == orangefs::ObjectType::metafile) {
    stat.datafiles = static_cast<std::uint32_t>(attributes.datafiles.size());
    stat.strip_size = strip_size_of(attributes).value_or(0);
    if (is_stuffed(attributes)) {
      stat.size = static_cast<std::uint64_t>(std::max(attributes.stuffed_size, 0));
    }
  }
  return stat;
}

}  // namespace vpfs::client
