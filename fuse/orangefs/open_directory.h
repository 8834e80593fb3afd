#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

#include "client/orangefs/file_system.h"
#include "fuse/handles.h"
#include "fuse/user_shares.h"

namespace vpfs::fuse::pvfs {

class OpenDirectory;

// The memory of the pages that listings keep, which users share. A user without room loses the page
// of the directory that it has gone on with longest ago; it is read again when it is needed.
// Thread-safe.
class ListedPages {
 public:
  explicit ListedPages(std::uint64_t bound) : shares_(bound) {}

  // The directory keeps that much from now on. It loses it at once if its user has no room even
  // without its other directories.
  void keep(OpenDirectory& directory, std::uint64_t bytes);
  void closed(const OpenDirectory& directory);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  using Listed = std::list<OpenDirectory*>;  // of one user, by last use
  struct Kept {
    uid_t user = 0;
    std::uint64_t bytes = 0;
    Listed::iterator place;
  };
  void leave(const OpenDirectory& directory);

  mutable std::mutex mutex_;  // taken before those of directories
  UserShares shares_;
  std::unordered_map<const OpenDirectory*, Kept> kept_;
  std::unordered_map<uid_t, Listed> by_user_;  // those that have some
};

// A directory that a process lists. Entries are numbered from 2 in the order of the listing, after
// "." and "..". Thread-safe: a listing that was interrupted goes on beside the next.
class OpenDirectory : public std::enable_shared_from_this<OpenDirectory> {
 public:
  struct Page {
    std::uint64_t first = 0;  // the number of its first entry
    client::DirectoryPage content;

    [[nodiscard]] std::uint64_t end() const { return first + content.entries.size(); }
    [[nodiscard]] std::uint64_t memory() const;
  };
  using PagePtr = std::shared_ptr<const Page>;

  // `pages` outlive it.
  OpenDirectory(orangefs::Handle opened, client::CallerPtr opener, ListedPages& pages)
      : handle(opened), caller(std::move(opener)), pages_(pages) {}
  ~OpenDirectory() { pages_.closed(*this); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  // The page that was read last, if it has that entry or, being the last page, ends before it.
  [[nodiscard]] PagePtr page_with(std::uint64_t entry) const;
  // The last page that is known to begin at or before the entry: its first number, and where the
  // servers find it.
  [[nodiscard]] std::pair<std::uint64_t, client::DirectoryCursor> begin_of(
      std::uint64_t entry) const;
  void keep(const PagePtr& page);
  // The listing starts again, from what the servers have then.
  void rewind();

  const orangefs::Handle handle;
  const client::CallerPtr caller;

 private:
  friend class ListedPages;
  void drop_page();
  void note_begin();

  static constexpr std::uint64_t kFirst = 2;  // behind "." and ".."

  ListedPages& pages_;
  mutable std::mutex mutex_;
  PagePtr page_;
  // Where some pages begin, not nearer to each other than that.
  std::map<std::uint64_t, client::DirectoryCursor> begins_ = {{kFirst, {}}};
  std::uint64_t apart_ = 0;
  std::pair<std::uint64_t, client::DirectoryCursor> next_ = {kFirst, {}};  // behind the page
};
using OpenDirectories = Handles<OpenDirectory>;

}  // namespace vpfs::fuse::pvfs
