#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataserver/handle_ranges.h"
#include "dataserver/key_value_store.h"
#include "dataserver/wall_clock.h"
#include "protocols/pvfs2/responses.h"

namespace vpfs::dataserver {

// The metadata objects of one server: metafiles, directories with their entries, symbolic links,
// extended attributes. Checks what must hold between objects, not who may do what.
//
// Every change is one change set of the store; after it, await durable() before telling a client.
//
// Keys: 'o' handle -> attributes; 'd' dirdata name -> entry number, handle; 'n' dirdata entry
// number -> name; 'x' handle name -> extended attribute; 's' -> the next serial number. Handles
// and numbers in keys are big-endian, so that they sort.
class Metadata {
 public:
  Metadata(KeyValueStore& store, const HandleRanges& ranges, std::uint32_t self, WallClock clock);

  // Makes the root directory where it belongs to this server and is not there yet.
  [[nodiscard]] pvfs2::Status open();
  [[nodiscard]] net::Task<pvfs2::Status> durable() { return store_.make_durable(); }
  [[nodiscard]] std::uint64_t now_seconds() const;

  // All attributes of an object, mask saying which; without a capability.
  [[nodiscard]] Outcome<pvfs2::Attributes> attributes(pvfs2::Handle handle);
  // Owner, permissions, times and (of a symbolic link) the target as the mask says; times without
  // their _SET bit mean now.
  [[nodiscard]] pvfs2::Status set_attributes(pvfs2::Handle handle, const pvfs2::Attributes& wanted);

  // Each makes an object that no directory names yet, owned as `wanted` says. Datafiles come to
  // lie on the servers `placement`, in that order.
  [[nodiscard]] Outcome<pvfs2::Attributes> create_file(const pvfs2::Attributes& wanted,
                                                       std::span<const std::uint32_t> placement,
                                                       pvfs2::Handle* handle);
  [[nodiscard]] Outcome<pvfs2::Handle> create_directory(const pvfs2::Attributes& wanted);
  [[nodiscard]] Outcome<pvfs2::Handle> create_symlink(const pvfs2::Attributes& wanted);
  // A directory must be empty (ENOTEMPTY). Returns the object as it was.
  [[nodiscard]] Outcome<pvfs2::Attributes> remove(pvfs2::Handle handle);

  [[nodiscard]] Outcome<pvfs2::Handle> find_entry(pvfs2::Handle dirdata, std::string_view name);
  [[nodiscard]] pvfs2::Status add_entry(pvfs2::Handle dirdata, std::string_view name,
                                        pvfs2::Handle target);
  // The handle that the entry had.
  [[nodiscard]] Outcome<pvfs2::Handle> remove_entry(pvfs2::Handle dirdata, std::string_view name);
  [[nodiscard]] Outcome<pvfs2::Handle> change_entry(pvfs2::Handle dirdata, std::string_view name,
                                                    pvfs2::Handle target);
  // Up to `limit` entries after `token`, in the order in which they were made; removing entries
  // does not move others.
  [[nodiscard]] Outcome<pvfs2::ReaddirResponse> entries(pvfs2::Handle dirdata, std::uint64_t token,
                                                        std::uint32_t limit);

  enum class IfPresent { replace, must_not_be, must_be };
  [[nodiscard]] Outcome<std::string> extended(pvfs2::Handle handle, std::string_view key);
  [[nodiscard]] pvfs2::Status set_extended(pvfs2::Handle handle, std::span<const std::string> keys,
                                           std::span<const std::string> values, IfPresent rule);
  [[nodiscard]] pvfs2::Status remove_extended(pvfs2::Handle handle, std::string_view key);
  [[nodiscard]] Outcome<std::vector<std::string>> extended_keys(pvfs2::Handle handle);

  // Up to `limit` handles of metadata objects from `from` on, ascending.
  [[nodiscard]] Outcome<std::vector<pvfs2::Handle>> handles(pvfs2::Handle from,
                                                            std::uint32_t limit);

 private:
  [[nodiscard]] Outcome<std::uint64_t> take_serials(ChangeSet& changes, std::uint64_t count);
  [[nodiscard]] Outcome<pvfs2::Attributes> dirdata(pvfs2::Handle handle);
  void put_object(ChangeSet& changes, pvfs2::Handle handle, const pvfs2::Attributes& attributes);
  // The dirdata has `difference` more entries and has changed now.
  void touch_dirdata(ChangeSet& changes, pvfs2::Handle handle, pvfs2::Attributes attributes,
                     int difference);
  void make_directory(ChangeSet& changes, pvfs2::Handle directory, pvfs2::Handle dirdata,
                      const pvfs2::Attributes& wanted);
  [[nodiscard]] pvfs2::Status erase_with_prefix(ChangeSet& changes, std::string_view prefix);

  KeyValueStore& store_;
  const HandleRanges& ranges_;
  std::uint32_t self_;
  WallClock clock_;
  std::uint64_t first_serial_;
};

}  // namespace vpfs::dataserver
