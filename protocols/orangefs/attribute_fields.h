#pragma once

#include "protocols/orangefs/basic_fields.h"

// The wire order of an object's attributes. Mask and type decide which parts are present.
namespace vpfs::orangefs {

// Both counts come before the two arrays.
template <typename A>
void fields(A& archive, StructOf<A, DistributedDirectory>& x) {
  auto handle_count = static_cast<std::uint32_t>(x.dirdata_handles.size());
  auto bitmap_count = static_cast<std::uint32_t>(x.bitmap.size());
  VPFS_FIELDS(archive, x.tree_height);
  if constexpr (A::kDecodes) {
    handle_count = archive.count(sizeof(Handle));
    bitmap_count = archive.count(sizeof(std::uint32_t));
  } else {
    VPFS_FIELDS(archive, handle_count, bitmap_count);
  }
  VPFS_FIELDS(archive, x.split_size, x.server_number, x.branch_level, array(x.bitmap, bitmap_count),
              kPad4, array(x.dirdata_handles, handle_count));
}

template <typename A>
void fields(A& archive, StructOf<A, DirectoryHint>& x) {
  VPFS_FIELDS(archive, x.dirent_count, x.distribution_name_length, kPad4, x.distribution_name,
              x.distribution_parameters_length, kPad4, x.distribution_parameters, x.datafile_count,
              x.layout, x.server_count, x.servers_length, x.servers);
}

template <typename A>
void datafile_fields(A& archive, StructOf<A, Attributes>& x) {
  if constexpr (A::kDecodes) {
    const std::uint32_t count = archive.count(sizeof(Handle));
    VPFS_FIELDS(archive, kPad4, array(x.datafiles, count), x.flags);
  } else {
    const auto count = static_cast<std::uint32_t>(x.datafiles.size());
    VPFS_FIELDS(archive, count, kPad4, array(x.datafiles, count), x.flags);
  }
}

template <typename A>
void metafile_fields(A& archive, StructOf<A, Attributes>& x) {
  if (x.type == ObjectType::metafile && (x.mask & kAttrMetaUnstuffed) == 0) {
    VPFS_FIELDS(archive, x.stuffed_size, kPad4);
  }
  if ((x.mask & kAttrMetaDistribution) != 0) VPFS_FIELDS(archive, x.distribution);
  if ((x.mask & kAttrMetaDatafiles) != 0) datafile_fields(archive, x);
  if ((x.mask & kAttrMetaMirrorDatafiles) != 0) {
    VPFS_FIELDS(archive, x.mirror_copies, kPad4);
    VPFS_FIELDS(archive,
                array(x.mirror_datafiles, std::uint64_t{x.mirror_copies} * x.datafiles.size()));
  }
}

template <typename A>
void fields(A& archive, StructOf<A, Attributes>& x) {
  VPFS_FIELDS(archive, x.uid, x.gid, x.permissions, kPad4, x.atime, x.mtime, x.ctime, x.mask,
              x.type);
  if ((x.mask & kAttrCapability) != 0) VPFS_FIELDS(archive, x.capability);
  metafile_fields(archive, x);
  if ((x.mask & kAttrDataSize) != 0) VPFS_FIELDS(archive, x.size);
  if ((x.mask & kAttrSymlinkTarget) != 0) {
    VPFS_FIELDS(archive, x.symlink_target_length, kPad4, x.symlink_target);
  }
  if ((x.mask & kAttrDistDir) != 0) VPFS_FIELDS(archive, x.distributed);
  if ((x.mask & (kAttrDirentCount | kAttrDirHint)) != 0) VPFS_FIELDS(archive, x.directory);
}

}  // namespace vpfs::orangefs
