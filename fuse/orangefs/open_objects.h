#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "protocols/orangefs/basic_types.h"

namespace vpfs::fuse::pvfs {

// A file that processes have open through this mount, however often.
struct OpenObject {
  // When it was last written and its server has not been told yet: seconds since the epoch; 0: the
  // server knows. An OrangeFS server leaves the time of a write to the client.
  std::atomic<std::uint64_t> written_at = 0;
  // Its last name is gone. It lives until it is closed.
  std::atomic<bool> nameless = false;
  std::size_t opens = 0;  // the table's own
};

// All of them, by handle. Thread-safe.
class OpenObjects {
 public:
  // One more open of the file.
  [[nodiscard]] std::shared_ptr<OpenObject> open(orangefs::Handle handle);
  // One less. True: it was the last one and the file has no name, so the caller destroys it.
  [[nodiscard]] bool close(orangefs::Handle handle);
  // The file has lost its name. True: it is open, so it stays until close() says otherwise.
  [[nodiscard]] bool keep(orangefs::Handle handle);
  // Null: it is not open.
  [[nodiscard]] std::shared_ptr<const OpenObject> find(orangefs::Handle handle) const;
  // The server knows the time of the file's last write.
  void forget_write(orangefs::Handle handle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<orangefs::Handle, std::shared_ptr<OpenObject>> all_;
};

}  // namespace vpfs::fuse::pvfs
