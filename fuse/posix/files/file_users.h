#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace vpfs::fuse {

// Which users have a file open. Thread-safe.
class FileUsers {
  struct File;

 public:
  // One open of a file by a user. It may outlive its last reader, but not the table.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept
        : users_(std::exchange(other.users_, nullptr)), file_(other.file_), uid_(other.uid_) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(users_, other.users_);
      std::swap(file_, other.file_);
      std::swap(uid_, other.uid_);
      return *this;
    }
    ~Use() {
      if (users_ != nullptr) users_->end(*file_, uid_);
    }
    // Whether another user has the file open too.
    [[nodiscard]] bool is_shared() const { return users_ != nullptr && file_->users > 1; }

   private:
    friend class FileUsers;
    Use(FileUsers& users, File& file, uid_t uid) : users_(&users), file_(&file), uid_(uid) {}

    FileUsers* users_ = nullptr;
    File* file_ = nullptr;  // the table's own
    uid_t uid_ = 0;
  };

  // `inode` is the kernel's number of the file.
  [[nodiscard]] Use begin(std::uint64_t inode, uid_t uid);

 private:
  struct Opens {
    uid_t uid = 0;
    std::size_t count = 0;  // not 0
  };
  struct File {
    std::uint64_t inode = 0;
    std::vector<Opens> opens;
    std::atomic<std::size_t> users = 0;  // as many as there are in `opens`
  };

  void end(File& file, uid_t uid);

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<File>> files_;
};

}  // namespace vpfs::fuse
