#include "dataserver/orangefs/datafiles.h"

#include <cerrno>

namespace vpfs::dataserver {

Outcome<std::int64_t> Datafiles::size(orangefs::Handle handle) {
  if (removed_.contains(handle)) return refuse(ENOENT);
  return store_.size(handle);
}

Outcome<void> Datafiles::truncate(orangefs::Handle handle, std::int64_t size) {
  if (removed_.contains(handle)) return refuse(ENOENT);
  return store_.truncate(handle, size);
}

Outcome<void> Datafiles::remove(orangefs::Handle handle) {
  Outcome<void> removed = store_.remove(handle);
  if (!removed || !removed_.insert(handle).second) return removed;
  in_order_.push_back(handle);
  if (in_order_.size() > kMostRemoved) {
    removed_.erase(in_order_.front());
    in_order_.pop_front();
  }
  return removed;
}

}  // namespace vpfs::dataserver
