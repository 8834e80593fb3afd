#pragma once

#include "protocols/orangefs/attribute_fields.h"

// The wire order of the operations on names, directories, attributes and whole objects.
namespace vpfs::orangefs {

template <typename A>
void fields(A& archive, StructOf<A, CreateRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, kPad4, x.credential, x.attributes, x.num_datafiles, x.layout);
}
template <typename A>
void fields(A& archive, StructOf<A, RemoveRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.credential);
}
template <typename A>
void fields(A& archive, StructOf<A, GetattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.attribute_mask, x.credential);
}
template <typename A>
void fields(A& archive, StructOf<A, SetattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, kPad4, x.attributes, x.credential);
}
template <typename A>
void fields(A& archive, StructOf<A, LookupPathRequest>& x) {
  VPFS_FIELDS(archive, x.path, x.fs_id, kPad4, x.starting_handle, x.attribute_mask, x.credential);
}
template <typename A>
void fields(A& archive, StructOf<A, CrdirentRequest>& x) {
  VPFS_FIELDS(archive, x.credential, x.name, x.new_handle, x.parent_handle, x.dirdata_handle,
              x.fs_id);
}
template <typename A>
void fields(A& archive, StructOf<A, RmdirentRequest>& x) {
  VPFS_FIELDS(archive, x.name, x.dirdata_handle, x.fs_id);
}
template <typename A>
void fields(A& archive, StructOf<A, ChdirentRequest>& x) {
  VPFS_FIELDS(archive, x.name, x.new_handle, x.dirdata_handle, x.fs_id);
}
template <typename A>
void fields(A& archive, StructOf<A, TruncateRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, kPad4, x.size, x.flags);
}
template <typename A>
void fields(A& archive, StructOf<A, MkdirRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, kPad4, x.credential, x.attributes, kPad4, list(x.handle_extents),
              x.servers_min, x.servers_max, x.split_size, x.layout);
}
template <typename A>
void fields(A& archive, StructOf<A, ReaddirRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.dirent_limit, kPad4, x.token);
}
template <typename A>
void fields(A& archive, StructOf<A, FlushRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.flags);
}
template <typename A>
void fields(A& archive, StructOf<A, ListattrRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.attribute_mask, kPad4, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, BatchCreateRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, x.object_type, x.count, kPad4, kPad4, list(x.handle_extents));
}
template <typename A>
void fields(A& archive, StructOf<A, BatchRemoveRequest>& x) {
  VPFS_FIELDS(archive, x.fs_id, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, UnstuffRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.attribute_mask, x.credential);
}
template <typename A>
void fields(A& archive, StructOf<A, GeteattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, list(keyval(x.keys), x.value_sizes));
}
template <typename A>
void fields(A& archive, StructOf<A, SeteattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.flags, kPad4, list(keyval(x.keys), keyval(x.values)));
}
template <typename A>
void fields(A& archive, StructOf<A, AtomiceattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, x.flags, x.opcode,
              list(keyval(x.keys), keyval(x.values), x.value_sizes));
}
template <typename A>
void fields(A& archive, StructOf<A, DeleattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, keyval(x.key));
}
template <typename A>
void fields(A& archive, StructOf<A, ListeattrRequest>& x) {
  VPFS_FIELDS(archive, x.handle, x.fs_id, kPad4, x.token, list(x.key_sizes));
}

template <typename A>
void fields(A& archive, StructOf<A, CreateResponse>& x) {
  VPFS_FIELDS(archive, x.metafile_handle, x.stuffed, x.attributes);
}
template <typename A>
void fields(A& archive, StructOf<A, AttributesResponse>& x) {
  VPFS_FIELDS(archive, x.attributes);
}
template <typename A>
void fields(A& archive, StructOf<A, LookupPathResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.handles), kPad4, list(x.attributes));
}
template <typename A>
void fields(A& archive, StructOf<A, HandleResponse>& x) {
  VPFS_FIELDS(archive, x.handle);
}
template <typename A>
void fields(A& archive, StructOf<A, MkdirResponse>& x) {
  VPFS_FIELDS(archive, x.handle, x.capability);
}
template <typename A>
void fields(A& archive, StructOf<A, ReaddirResponse::Entry>& x) {
  VPFS_FIELDS(archive, x.name, x.handle);
}
template <typename A>
void fields(A& archive, StructOf<A, ReaddirResponse>& x) {
  VPFS_FIELDS(archive, x.token, x.directory_version, kPad4, list(x.entries));
}
template <typename A>
void fields(A& archive, StructOf<A, ListattrResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.errors, x.attributes));
}
template <typename A>
void fields(A& archive, StructOf<A, BatchCreateResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(x.handles));
}
template <typename A>
void fields(A& archive, StructOf<A, EattrResponse>& x) {
  VPFS_FIELDS(archive, kPad4, list(keyval(x.values), x.errors));
}
template <typename A>
void fields(A& archive, StructOf<A, ListeattrResponse>& x) {
  VPFS_FIELDS(archive, x.token, kPad4, list(keyval(x.keys)));
}

}  // namespace vpfs::orangefs
