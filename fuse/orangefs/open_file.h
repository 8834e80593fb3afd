#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "client/orangefs/file.h"
#include "client/orangefs/file_system.h"
#include "fuse/handles.h"
#include "fuse/orangefs/open_objects.h"

namespace vpfs::fuse::pvfs {

// A file that a process has open. Its I/O belongs to the application that opened it.
struct OpenFile : std::enable_shared_from_this<OpenFile> {
  OpenFile(orangefs::Handle opened, client::CallerPtr opener, std::size_t workers)
      : handle(opened), caller(std::move(opener)), by_worker(workers) {}

  const orangefs::Handle handle;
  const client::CallerPtr caller;
  // For a file whose mode forbids what the process that made it may do through this descriptor.
  std::optional<orangefs::Capability> right;
  std::shared_ptr<OpenObject> object;
  // Each worker opens the file when it first has to do with it, and uses no other's.
  struct Opened {
    std::unique_ptr<client::File> by_caller;
    // A process that has a file open may go on whatever becomes of its mode, and one that makes a
    // file may write it even if the mode forbids it. The servers look at the mode each time, but
    // not for root.
    std::unique_ptr<client::File> by_root;
  };
  std::vector<Opened> by_worker;
};
using OpenFiles = Handles<OpenFile>;
using OpenFilePtr = OpenFiles::Pointer;

// A directory that a process lists. Entries are numbered from 2 in the order of the listing, after
// "." and "..". Thread-safe: a listing that was interrupted goes on beside the next.
class OpenDirectory : public std::enable_shared_from_this<OpenDirectory> {
 public:
  struct Page {
    std::uint64_t first = 0;  // the number of its first entry
    client::DirectoryPage content;

    [[nodiscard]] std::uint64_t end() const { return first + content.entries.size(); }
  };
  using PagePtr = std::shared_ptr<const Page>;

  OpenDirectory(orangefs::Handle opened, client::CallerPtr opener)
      : handle(opened), caller(std::move(opener)) {}

  // The page that was read last, if it has that entry or, being the last page, ends before it.
  [[nodiscard]] PagePtr page_with(std::uint64_t entry) const {
    const std::lock_guard lock(mutex_);
    if (!page_ || entry < page_->first) return nullptr;
    return entry < page_->end() || page_->content.end ? page_ : nullptr;
  }
  // The last page that is known to begin at or before the entry: its first number, and where the
  // servers find it.
  [[nodiscard]] std::pair<std::uint64_t, client::DirectoryCursor> begin_of(
      std::uint64_t entry) const {
    const std::lock_guard lock(mutex_);
    return *std::prev(begins_.upper_bound(entry));
  }
  void keep(PagePtr page) {
    const std::lock_guard lock(mutex_);
    if (!page->content.end) begins_.insert_or_assign(page->end(), page->content.next);
    page_ = std::move(page);
  }
  // The listing starts again, from what the servers have then.
  void rewind() {
    const std::lock_guard lock(mutex_);
    page_.reset();
    begins_.erase(std::next(begins_.begin()), begins_.end());
  }

  const orangefs::Handle handle;
  const client::CallerPtr caller;

 private:
  mutable std::mutex mutex_;
  PagePtr page_;
  std::map<std::uint64_t, client::DirectoryCursor> begins_ = {{2, client::DirectoryCursor()}};
};
using OpenDirectories = Handles<OpenDirectory>;

}  // namespace vpfs::fuse::pvfs
