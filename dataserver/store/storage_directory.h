#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace vpfs::dataserver {

// The directory of one server, with the metadata below it in `metadata` and the bstreams in `data`.
// Locked by the process that uses it, and marked with the version of the format and with its
// owner, which must not change.
class StorageDirectory {
 public:
  // Creates the directory if it is missing. `owner` is one line that names its server. The error
  // names the directory and why it cannot be used.
  [[nodiscard]] static Result<StorageDirectory> open(const std::string& path,
                                                     std::string_view owner);
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
