#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "client/orangefs/file_system.h"

namespace vpfs::fuse::pvfs {

// A file that processes have open through this mount, however often.
struct OpenObject {
  // When it was last written and its server has not been told yet: seconds since the epoch; 0: the
  // server knows. An OrangeFS server leaves the time of a write to the client.
  std::atomic<std::uint64_t> written_at = 0;
  // Shown as a part of that second, so that the kernel drops pages that were read before the last
  // write of a second ended.
  std::atomic<std::uint32_t> writes = 0;
  // Its last name is gone. It lives until it is closed.
  std::atomic<bool> nameless = false;
  // Writes and truncations whose processes are gone and that are under way all the same. Nothing
  // that comes later overtakes them.
  std::atomic<int> abandoned_changes = 0;
  // The furthest end of such writes, since the last truncation. The kernel does not know of them,
  // so its idea of the file's end may be before that.
  std::atomic<std::uint64_t> abandoned_end = 0;
  // The last truncation had no process any more when it ended. So the kernel's idea of the file's
  // end may be behind the end.
  std::atomic<bool> was_cut_unseen = false;
  // The table's own.
  std::size_t opens = 0;
  client::LastName last_name;  // where that was, if it is nameless
};

// All of them, by handle. Thread-safe.
class OpenObjects {
 public:
  // One more open of the file. Null: it is being destroyed.
  [[nodiscard]] std::shared_ptr<OpenObject> open(orangefs::Handle handle);
  // One less. A name: it was the last one and the file has no name any more, so the caller destroys
  // it, and calls forget_end() then.
  [[nodiscard]] std::optional<client::LastName> close(orangefs::Handle handle);
  // The file has lost its name. True: it is open, so it stays until close() says otherwise. False:
  // the caller destroys it, and calls forget_end() then.
  [[nodiscard]] bool keep(orangefs::Handle handle, client::LastName last);
  void forget_end(orangefs::Handle handle);
  // Null: it is not open.
  [[nodiscard]] std::shared_ptr<const OpenObject> find(orangefs::Handle handle) const;
  // The server knows the time of the file's last write.
  void forget_write(orangefs::Handle handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<orangefs::Handle, std::shared_ptr<OpenObject>> all_;
  // A file whose parts go one by one could still be opened, and would be empty.
  std::unordered_multiset<orangefs::Handle> ending_;
};

}  // namespace vpfs::fuse::pvfs
