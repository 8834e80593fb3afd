#include "fuse/orangefs/open_objects.h"

#include <utility>

#include "base/check.h"

namespace vpfs::fuse::pvfs {

std::shared_ptr<OpenObject> OpenObjects::open(orangefs::Handle handle) {
  const std::lock_guard lock(mutex_);
  if (ending_.contains(handle)) return nullptr;
  std::shared_ptr<OpenObject>& object = all_[handle];
  if (!object) object = std::make_shared<OpenObject>();
  ++object->opens;
  return object;
}

std::optional<client::LastName> OpenObjects::close(orangefs::Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(handle);
  VPFS_ASSERT(found != all_.end());
  if (--found->second->opens > 0) return std::nullopt;
  const std::shared_ptr<OpenObject> object = std::move(found->second);
  all_.erase(found);
  if (!object->nameless) return std::nullopt;
  ending_.insert(handle);
  return std::move(object->last_name);
}

bool OpenObjects::keep(orangefs::Handle handle, client::LastName last) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(handle);
  if (found == all_.end()) {
    ending_.insert(handle);
    return false;
  }
  found->second->last_name = std::move(last);
  found->second->nameless = true;
  return true;
}

void OpenObjects::forget_end(orangefs::Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = ending_.find(handle);
  VPFS_ASSERT(found != ending_.end());
  ending_.erase(found);
}

std::shared_ptr<const OpenObject> OpenObjects::find(orangefs::Handle handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(handle);
  return found == all_.end() ? nullptr : found->second;
}

void OpenObjects::forget_write(orangefs::Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(handle);
  if (found != all_.end()) found->second->written_at = 0;
}

}  // namespace vpfs::fuse::pvfs
