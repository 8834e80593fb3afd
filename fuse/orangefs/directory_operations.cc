// Operations that list directories.
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/result.h"
#include "fuse/orangefs/call.h"
#include "fuse/orangefs/file_system.h"

namespace vpfs::fuse::pvfs {
namespace {

constexpr std::uint64_t kDots = 2;  // "." and ".."

using DirectoryPtr = OpenDirectories::Pointer;

// The page that has the entry, or the last page.
net::Task<Result<OpenDirectory::PagePtr>> page_with(Call& call, OpenDirectory& directory,
                                                    std::uint64_t entry) {
  if (OpenDirectory::PagePtr known = directory.page_with(entry)) co_return known;
  client::FileSystem servers = call.worker().session().as(directory.caller);
  auto [first, cursor] = directory.begin_of(entry);
  for (;;) {
    Result<client::DirectoryPage> content =
        co_await servers.read_directory(directory.handle, cursor);
    VPFS_CO_TRY(content);
    const auto page = std::make_shared<OpenDirectory::Page>();
    page->first = first;
    page->content = std::move(*content);
    directory.keep(page);
    if (entry < page->end() || page->content.end) co_return page;
    first = page->end();
    cursor = page->content.next;
  }
}

// One answer of entries, with the attributes of each or without.
class Listing {
 public:
  Listing(fuse_req_t request, std::size_t size, bool with_attributes)
      : request_(request), room_(size), with_attributes_(with_attributes) {}

  // The bytes that an entry takes.
  [[nodiscard]] std::size_t size_of(const std::string& name) const {
    constexpr fuse_entry_param kNothing = {};
    return with_attributes_
               ? fuse_add_direntry_plus(request_, nullptr, 0, name.c_str(), &kNothing, 0)
               : fuse_add_direntry(request_, nullptr, 0, name.c_str(), &kNothing.attr, 0);
  }
  // REQUIRES: it has room. `number` is its own, and what the next call begins behind.
  void add(const std::string& name, const fuse_entry_param& entry, std::uint64_t number) {
    char* const at = room_.data() + used_;
    const std::size_t left = room_.size() - used_;
    const auto next = static_cast<off_t>(number + 1);
    used_ += with_attributes_
                 ? fuse_add_direntry_plus(request_, at, left, name.c_str(), &entry, next)
                 : fuse_add_direntry(request_, at, left, name.c_str(), &entry.attr, next);
  }
  [[nodiscard]] std::size_t left() const { return room_.size() - used_; }
  [[nodiscard]] bool with_attributes() const { return with_attributes_; }
  void answer(Call& call) { fuse_reply_buf(call.take(), room_.data(), used_); }

 private:
  fuse_req_t request_;
  std::vector<char> room_;
  std::size_t used_ = 0;
  bool with_attributes_;
};

// An entry whose attributes are unknown, or not asked for.
fuse_entry_param plain_entry(std::uint64_t number) {
  fuse_entry_param entry = {};
  entry.attr.st_ino = number;
  return entry;
}

fuse_entry_param dot_entry(std::uint64_t number) {
  fuse_entry_param entry = plain_entry(number);
  entry.attr.st_mode = S_IFDIR;
  return entry;
}

// What has room, from that entry of the page on.
net::Task<> add_entries(Call& call, Listing& listing, const OpenDirectory::Page& page,
                        std::uint64_t number) {
  const std::vector<client::DirectoryEntry>& entries = page.content.entries;
  const std::size_t begin = static_cast<std::size_t>(number - page.first);
  std::size_t end = begin;
  for (std::size_t left = listing.left(); end < entries.size(); ++end) {
    const std::size_t size = listing.size_of(entries[end].name);
    if (size > left) break;
    left -= size;
  }
  std::vector<Result<client::Stat>> objects;
  if (listing.with_attributes() && end > begin) {
    std::vector<orangefs::Handle> handles;
    for (std::size_t i = begin; i < end; ++i) handles.push_back(entries[i].handle);
    objects = co_await call.servers().stat_all(std::move(handles));
  }
  for (std::size_t i = begin; i < end; ++i) {
    const client::DirectoryEntry& each = entries[i];
    // One that is gone meanwhile, or cannot be looked at, comes without attributes.
    const bool known = !objects.empty() && objects[i - begin];
    const fuse_entry_param entry =
        known ? call.files().entry_of(*objects[i - begin]) : plain_entry(each.handle);
    listing.add(each.name, entry, page.first + i);
  }
}

net::Task<> list(Call call, DirectoryPtr directory, std::uint64_t number, std::size_t size,
                 bool with_attributes) {
  Listing listing(call.request(), size, with_attributes);
  if (number == 0) directory->rewind();
  const std::string dots = "..";
  for (; number < kDots; ++number) {
    const std::string name = dots.substr(0, number + 1);
    const std::uint64_t object = number == 0 ? directory->handle : FUSE_ROOT_ID;
    if (listing.size_of(name) > listing.left()) co_return listing.answer(call);
    listing.add(name, dot_entry(object), number);
  }
  const Result<OpenDirectory::PagePtr> page = co_await page_with(call, *directory, number);
  if (!page) co_return call.fail_object(page.error());
  if (number < (*page)->end()) co_await add_entries(call, listing, **page, number);
  listing.answer(call);
}

void opendir(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  Call call(request);
  OpenDirectories& all = call.files().directories();
  const orangefs::Handle handle = call.files().handle_of(number);
  ListedPages& pages = call.files().listed_pages();
  info->fh = all.add(std::make_shared<OpenDirectory>(handle, call.caller(), pages));
  if (fuse_reply_open(call.take(), info) != 0) all.close(info->fh);
}

void releasedir(fuse_req_t request, fuse_ino_t /*number*/, fuse_file_info* info) {
  MountWorker::current().files().directories().close(info->fh);
  fuse_reply_err(request, 0);
}

void fsyncdir(fuse_req_t request, fuse_ino_t /*number*/, int /*only_data*/,
              fuse_file_info* /*info*/) {
  // Servers put changes of names on stable storage before they answer.
  fuse_reply_err(request, 0);
}

void start_list(fuse_req_t request, std::size_t size, off_t offset, const fuse_file_info& info,
                bool with_attributes) {
  // Before a signal can be told, after which another worker may close the directory.
  DirectoryPtr directory = OpenDirectories::at(info.fh).shared_from_this();
  Call call(request);
  MountWorker& worker = call.worker();
  worker.spawn(list(std::move(call), std::move(directory), static_cast<std::uint64_t>(offset), size,
                    with_attributes));
}

void readdir(fuse_req_t request, fuse_ino_t /*number*/, std::size_t size, off_t offset,
             fuse_file_info* info) {
  start_list(request, size, offset, *info, false);
}

void readdirplus(fuse_req_t request, fuse_ino_t /*number*/, std::size_t size, off_t offset,
                 fuse_file_info* info) {
  start_list(request, size, offset, *info, true);
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.opendir = opendir;
  operations.releasedir = releasedir;
  operations.fsyncdir = fsyncdir;
  operations.readdir = readdir;
  operations.readdirplus = readdirplus;
}

}  // namespace vpfs::fuse::pvfs
