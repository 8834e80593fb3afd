// The operations on attributes and on the extent of files.

#include <cerrno>
#include <utility>

#include "base/result.h"
#include "dataserver/orangefs/operations.h"
#include "dataserver/orangefs/permissions.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Attributes;
using orangefs::Handle;
using orangefs::ObjectType;
using orangefs::Op;
using orangefs::Response;

constexpr std::uint64_t kCapabilityLifetime = 600;  // seconds

// The handles that a capability for an object covers.
std::vector<Handle> covered(Handle handle, const Attributes& object) {
  std::vector<Handle> handles = {handle};
  handles.insert(handles.end(), object.datafiles.begin(), object.datafiles.end());
  handles.insert(handles.end(), object.distributed.dirdata_handles.begin(),
                 object.distributed.dirdata_handles.end());
  return handles;
}

// Removes what the mask does not ask for. The common attributes always stay, and so does the flag
// that a file is not stuffed.
void reduce(Attributes& object, std::uint32_t mask) {
  object.mask &= mask | orangefs::kAttrCommonAll | orangefs::kAttrMetaUnstuffed;
  const auto keeps = [&](std::uint32_t bits) { return (object.mask & bits) != 0; };
  if (!keeps(orangefs::kAttrMetaDistribution)) object.distribution = {};
  if (!keeps(orangefs::kAttrMetaDatafiles)) object.datafiles.clear();
  if (!keeps(orangefs::kAttrSymlinkTarget)) {
    object.symlink_target.clear();
    object.symlink_target_length = 0;
  }
  if (!keeps(orangefs::kAttrDistDir)) object.distributed = {};
  if (!keeps(orangefs::kAttrDirentCount | orangefs::kAttrDirHint)) object.directory = {};
}

}  // namespace

Outcome<Attributes> Operations::shown(Handle handle, std::uint32_t mask,
                                      const orangefs::Credential* credential) {
  if (!is_ours(handle)) return refuse(ENOENT);
  if (HandleRanges::is_datafile(handle)) {
    const Outcome<std::int64_t> size = context_.datafiles.size(handle);
    VPFS_TRY(size);
    Attributes datafile;
    datafile.type = ObjectType::datafile;
    datafile.mask = orangefs::kAttrCommonAll | orangefs::kAttrDataSize;
    datafile.size = *size;
    return datafile;
  }
  Outcome<Attributes> object = context_.metadata.attributes(handle);
  if (!object) return object;
  if ((mask & orangefs::kAttrCapability) != 0 && credential != nullptr) {
    object->mask |= orangefs::kAttrCapability;
    object->capability = {.issuer = "S:" + context_.config.servers[context_.self].alias,
                          .fs_id = context_.config.id,
                          .signature = {},
                          .timeout = context_.metadata.now_seconds() + kCapabilityLifetime,
                          .op_mask = permitted_operations(*object, *credential),
                          .handles = covered(handle, *object)};
  }
  reduce(*object, mask | orangefs::kAttrCapability);
  return object;
}

Operations::Reply Operations::run(const orangefs::GetattrRequest& body,
                                  const Request& /*request*/) {
  Outcome<Attributes> object = shown(body.handle, body.attribute_mask, &body.credential);
  if (!object) return ready(failure(Op::getattr, object.error()));
  return ready(Response{
      .status = 0,
      .body = orangefs::AttributesResponse{.op = Op::getattr, .attributes = std::move(*object)}});
}

// Files are never stuffed: all datafiles are known from the start.
Operations::Reply Operations::run(const orangefs::UnstuffRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapWrite)) {
    return ready(failure(Op::unstuff, status_of(EACCES)));
  }
  Outcome<Attributes> object = shown(body.handle, body.attribute_mask, &body.credential);
  if (!object) return ready(failure(Op::unstuff, object.error()));
  return ready(Response{
      .status = 0,
      .body = orangefs::AttributesResponse{.op = Op::unstuff, .attributes = std::move(*object)}});
}

Operations::Reply Operations::run(const orangefs::ListattrRequest& body,
                                  const Request& /*request*/) {
  orangefs::ListattrResponse list;
  for (const Handle handle : body.handles) {
    Outcome<Attributes> object = shown(handle, body.attribute_mask, nullptr);
    list.errors.push_back(status_of(object));
    list.attributes.push_back(object ? std::move(*object) : Attributes{});
  }
  return ready(Response{.status = 0, .body = std::move(list)});
}

Outcome<void> Operations::may_set(const Attributes& object, const orangefs::SetattrRequest& body,
                                  const Request& request) {
  // BATCH_CREATE makes a symbolic link without owner and target; its creator sets them.
  const bool unfinished = object.type == ObjectType::symlink && object.symlink_target.empty();
  if (unfinished) return {};
  const std::uint32_t permitted = request.capability.op_mask;
  const std::uint32_t mask = body.attributes.mask;
  const auto needs = [&](std::uint32_t attributes, std::uint32_t any_of) {
    return (mask & attributes) == 0 || (permitted & any_of) != 0;
  };
  const std::uint32_t write_or_set = orangefs::kCapWrite | orangefs::kCapSetattr;
  const std::uint32_t owners = orangefs::kAttrUid | orangefs::kAttrGid |
                               orangefs::kAttrPermissions | orangefs::kAttrSymlinkTarget |
                               orangefs::kAttrAtimeSet;
  if (!needs(owners, orangefs::kCapSetattr) ||
      !needs(orangefs::kAttrAtime, write_or_set | orangefs::kCapRead) ||
      !needs(orangefs::kAttrMtime | orangefs::kAttrMtimeSet | orangefs::kAttrCtime, write_or_set)) {
    return refuse(EACCES);
  }
  const orangefs::Credential& who = body.credential;
  if (who.uid == 0) return {};
  const bool gives_away = (mask & orangefs::kAttrUid) != 0 && body.attributes.uid != object.uid;
  const bool changes_group = (mask & orangefs::kAttrGid) != 0 && body.attributes.gid != object.gid;
  if (gives_away || (changes_group && !is_member(who, body.attributes.gid))) {
    return refuse(EPERM);
  }
  return {};
}

Operations::Reply Operations::run(const orangefs::SetattrRequest& body, const Request& request) {
  const Outcome<Attributes> object = context_.metadata.attributes(body.handle);
  if (!object) return ready(failure(Op::setattr, object.error()));
  Outcome<void> set = may_set(*object, body, request);
  if (set) set = context_.metadata.set_attributes(body.handle, body.attributes);
  if (!set) return ready(failure(Op::setattr, set.error()));
  return settled(answer(Op::setattr, 0));
}

Operations::Reply Operations::run(const orangefs::TruncateRequest& body, const Request& request) {
  if (!permits(request.capability, orangefs::kCapWrite)) {
    return ready(failure(Op::truncate, status_of(EACCES)));
  }
  if (!is_ours(body.handle) || !HandleRanges::is_datafile(body.handle)) {
    return ready(failure(Op::truncate, status_of(ENOENT)));
  }
  return ready(
      answer(Op::truncate, status_of(context_.datafiles.truncate(body.handle, body.size))));
}

Operations::Reply Operations::run(const orangefs::FlushRequest& body, const Request& /*request*/) {
  if (!is_ours(body.handle)) co_return failure(Op::flush, status_of(ENOENT));
  const bool datafile = HandleRanges::is_datafile(body.handle);
  net::Task<Outcome<void>> flushing =
      datafile ? context_.bstreams.flush(body.handle) : context_.metadata.durable();
  const Outcome<void> flushed = co_await std::move(flushing);
  co_return answer(Op::flush, status_of(flushed));
}

}  // namespace vpfs::dataserver
