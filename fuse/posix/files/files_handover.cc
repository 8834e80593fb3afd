// The part of PosixFileSystem that goes from one process to another.
#include <algorithm>
#include <utility>

#include <dirent.h>

#include "base/result.h"
#include "fuse/posix/files/file_system.h"

namespace vpfs::fuse {
namespace {

constexpr std::size_t kAtOnce = 250;  // descriptors

// The fields of an open file, for both directions.
template <typename Archive>
void archive(Archive& fields, OpenFile& file) {
  fields("number", file.number);
  fields("inode", file.inode);
  fields("uid", file.opener.uid);
  fields("gid", file.opener.gid);
  fields("job", file.opener.jobid);
  fields("has_id_bits", file.has_id_bits);
  fields("passes_cache", file.passes_cache);
  TimePoint closed_at = file.closed_at;
  pid_t closed_by = file.closed_by;
  fields("closed_at", closed_at);
  fields("closed_by", closed_by);
  file.closed_at = closed_at;
  file.closed_by = closed_by;
}

// Calls each(object, its state), which returns the descriptor.
template <typename Pointer, typename Each>
void save_all(const std::vector<Pointer>& all, std::string_view what,
              std::vector<PosixFileSystem::SavedPart>& parts, Each each) {
  for (std::size_t first = 0; first < all.size(); first += kAtOnce) {
    PosixFileSystem::SavedPart& part = parts.emplace_back();
    auto kept = std::make_shared<std::vector<Pointer>>();
    part.state.set("what", std::string(what));
    SavedState::Values& list = part.state.add_list(what);
    for (std::size_t i = first; i < std::min(all.size(), first + kAtOnce); ++i) {
      kept->push_back(all[i]);
      part.descriptors.push_back(each(*all[i], list.emplace_back()));
    }
    part.keeps = std::move(kept);
  }
}

}  // namespace

std::vector<PosixFileSystem::SavedPart> PosixFileSystem::save_open() {
  std::vector<SavedPart> parts;
  save_all(open_files_.all(), "files", parts, [](OpenFile& file, SavedState& to) {
    StateWriter out(to);
    archive(out, file);
    return file.descriptor.get();
  });
  save_all(open_directories_.all(), "directories", parts,
           [](OpenDirectory& directory, SavedState& to) {
             to.set("number", directory.number);
             to.set("uid", std::uint64_t{directory.uid});
             return ::dirfd(directory.stream);
           });
  return parts;
}

std::vector<PosixFileSystem::SavedPart> PosixFileSystem::save_objects(
    std::span<const std::uint64_t> nodes) {
  std::vector<SavedPart> parts;
  for (std::size_t next = 0; next < nodes.size();) {
    Inodes::Saved saved = inodes_.save(nodes, next);
    if (saved.records.empty()) continue;
    SavedPart& part = parts.emplace_back();
    part.state.set("what", "objects");
    part.state.set("records", std::move(saved.records));
    for (const ObjectPath& each : saved.open) part.descriptors.push_back(each->get());
    part.keeps = std::make_shared<std::vector<ObjectPath>>(std::move(saved.open));
  }
  return parts;
}

Result<void> PosixFileSystem::restore(const SavedState& part,
                                      std::vector<net::Descriptor> descriptors) {
  const std::string_view what = part.text("what");
  if (what == "objects") return inodes_.restore(part.text("records"), std::move(descriptors));
  if (what == "changed") {
    if (const auto* const nodes = part.find<SavedState::Numbers>("nodes")) inodes_.drop(*nodes);
    return {};
  }
  const SavedState::Values& all = part.list(what);
  if (all.size() != descriptors.size()) return fail("descriptors of open files are missing");
  for (std::size_t i = 0; i < all.size(); ++i) {
    VPFS_TRY(what == "files" ? restore_file(all[i], std::move(descriptors[i]))
                             : restore_directory(all[i], std::move(descriptors[i])));
  }
  return {};
}

Result<void> PosixFileSystem::restore_file(const SavedState& from, net::Descriptor descriptor) {
  auto file = std::make_shared<OpenFile>();
  StateReader in(from);
  archive(in, *file);
  file->descriptor = std::move(descriptor);
  file->place = OpenPlace::given_before(inodes_, file->opener.uid);
  file->use = file_users_.begin(file->inode, file->opener.uid);
  const std::uint64_t number = file->number;
  if (!open_files_.place(number, std::move(file))) {
    return fail("an open file has a number that another one has");
  }
  return {};
}

Result<void> PosixFileSystem::restore_directory(const SavedState& from,
                                                net::Descriptor descriptor) {
  const auto uid = static_cast<uid_t>(from.number("uid"));
  DIR* const stream = ::fdopendir(descriptor.get());
  if (stream == nullptr) return fail("an open directory cannot be listed any more");
  (void)descriptor.release();
  auto directory =
      std::make_shared<OpenDirectory>(stream, uid, OpenPlace::given_before(inodes_, uid));
  directory->offset = -1;  // where the other process was is not known
  if (!open_directories_.place(from.number("number"), std::move(directory))) {
    return fail("an open directory has a number that another one has");
  }
  return {};
}

}  // namespace vpfs::fuse
