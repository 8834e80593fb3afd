#include "fuse/orangefs/open_directory.h"

#include <iterator>

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::size_t kMostBegins = 256;

}  // namespace

void ListedPages::keep(OpenDirectory& directory, std::uint64_t bytes) {
  const uid_t user = directory.caller->uid;
  const std::lock_guard lock(mutex_);
  leave(directory);
  while (shares_.room_for(user) < bytes) {
    const auto others = by_user_.find(user);
    if (others == by_user_.end()) return directory.drop_page();
    OpenDirectory& oldest = *others->second.front();
    oldest.drop_page();
    leave(oldest);
  }
  shares_.take(user, bytes);
  Listed& listed = by_user_[user];
  kept_[&directory] = {
      .user = user, .bytes = bytes, .place = listed.insert(listed.end(), &directory)};
}

void ListedPages::closed(const OpenDirectory& directory) {
  const std::lock_guard lock(mutex_);
  leave(directory);
}

std::uint64_t ListedPages::bytes() const {
  const std::lock_guard lock(mutex_);
  return shares_.taken();
}

void ListedPages::leave(const OpenDirectory& directory) {
  const auto found = kept_.find(&directory);
  if (found == kept_.end()) return;
  const Kept& kept = found->second;
  shares_.give_back(kept.user, kept.bytes);
  const auto listed = by_user_.find(kept.user);
  listed->second.erase(kept.place);
  if (listed->second.empty()) by_user_.erase(listed);
  kept_.erase(found);
}

std::uint64_t OpenDirectory::Page::memory() const {
  std::uint64_t bytes = sizeof(Page) + content.entries.capacity() * sizeof(client::DirectoryEntry);
  for (const client::DirectoryEntry& entry : content.entries) bytes += entry.name.capacity();
  return bytes;
}

OpenDirectory::PagePtr OpenDirectory::page_with(std::uint64_t entry) const {
  const std::lock_guard lock(mutex_);
  if (!page_ || entry < page_->first) return nullptr;
  return entry < page_->end() || page_->content.end ? page_ : nullptr;
}

std::pair<std::uint64_t, client::DirectoryCursor> OpenDirectory::begin_of(
    std::uint64_t entry) const {
  const std::lock_guard lock(mutex_);
  const std::pair<std::uint64_t, client::DirectoryCursor> known =
      *std::prev(begins_.upper_bound(entry));
  return entry >= next_.first && next_.first > known.first ? next_ : known;
}

void OpenDirectory::keep(const PagePtr& page) {
  {
    const std::lock_guard lock(mutex_);
    page_ = page;
    if (!page->content.end) {
      next_ = {page->end(), page->content.next};
      note_begin();
    }
  }
  pages_.keep(*this, page->memory());
}

void OpenDirectory::rewind() {
  const std::lock_guard lock(mutex_);
  page_.reset();
  begins_ = {{kFirst, {}}};
  next_ = {kFirst, {}};
  apart_ = 0;
}

// Remembers where the next page begins, unless that is near another begin. The more there are, the
// farther is near.
void OpenDirectory::note_begin() {
  const auto known = begins_.find(next_.first);
  if (known != begins_.end()) {
    known->second = next_.second;
  } else if (next_.first > begins_.rbegin()->first + apart_) {
    begins_.insert(next_);
  }
  if (begins_.size() <= kMostBegins) return;
  apart_ = 2 * (begins_.rbegin()->first / kMostBegins);
  for (auto each = std::next(begins_.begin()); each != begins_.end();) {
    const bool is_near = each->first - std::prev(each)->first <= apart_;
    each = is_near ? begins_.erase(each) : std::next(each);
  }
}

void OpenDirectory::drop_page() {
  const std::lock_guard lock(mutex_);
  page_.reset();
}

}  // namespace vpfs::fuse::pvfs
