#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "dataserver/orangefs/server_config.h"

namespace vpfs::dataserver {

// The directory of one server: <path>/<alias>, with the metadata below it in `metadata` and the
// bstreams in `data`. Locked by the process that uses it, and marked with the version of the format
// and the place in its file system, which must not change.
class StorageDirectory {
 public:
  // Makes it when it is not there. The error names the directory and what stands against its use.
  [[nodiscard]] static Result<StorageDirectory> open(const ServerConfig& config,
                                                     std::uint32_t self);
  StorageDirectory(StorageDirectory&& other) noexcept;
  StorageDirectory& operator=(StorageDirectory&&) = delete;
  ~StorageDirectory();

  [[nodiscard]] std::string metadata_path() const { return path_ + "/metadata"; }
  [[nodiscard]] std::string data_path() const { return path_ + "/data"; }

 private:
  StorageDirectory(std::string path, int lock);
  std::string path_;
  int lock_;
};

}  // namespace vpfs::dataserver
