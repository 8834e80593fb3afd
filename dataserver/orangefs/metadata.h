#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataserver/orangefs/handle_ranges.h"
#include "dataserver/orangefs/wall_clock.h"
#include "dataserver/store/key_value_store.h"
#include "protocols/orangefs/responses.h"

namespace vpfs::dataserver {

// The metadata objects of one server: metafiles, directories with their entries, symbolic links,
// extended attributes. Checks consistency between objects, not permissions.
//
// Every change is one change set of the store; after it, await durable() before telling a client.
//
// Keys: 'o' handle -> attributes; 'd' dirdata name -> entry number, handle; 'n' dirdata entry
// number -> name; 'x' handle name -> extended attribute; 's' -> the next serial number. Handles
// and numbers in keys are big-endian, so that they sort.
class Metadata {
 public:
  Metadata(KeyValueStore& store, const HandleRanges& ranges, std::uint32_t self, WallClock clock);

  // Creates the root directory if it belongs to this server and is missing.
  [[nodiscard]] Outcome<void> open();
  [[nodiscard]] net::Task<Outcome<void>> durable() { return store_.make_durable(); }
  [[nodiscard]] std::uint64_t now_seconds() const;

  // All attributes of an object, mask saying which; without a capability.
  [[nodiscard]] Outcome<orangefs::Attributes> attributes(orangefs::Handle handle);
  // Owner, permissions, times and (of a symbolic link) the target as the mask says; times without
  // their _SET bit mean now.
  [[nodiscard]] Outcome<void> set_attributes(orangefs::Handle handle,
                                             const orangefs::Attributes& wanted);

  // Each creates an object without a name, with the owner in `wanted`. Datafiles are on the servers
  // of `placement`, in that order.
  [[nodiscard]] Outcome<orangefs::Attributes> create_file(const orangefs::Attributes& wanted,
                                                          std::span<const std::uint32_t> placement,
                                                          orangefs::Handle* handle);
  [[nodiscard]] Outcome<orangefs::Handle> create_directory(const orangefs::Attributes& wanted);
  [[nodiscard]] Outcome<orangefs::Handle> create_symlink(const orangefs::Attributes& wanted);
  // A directory must be empty (ENOTEMPTY). Returns the object as it was.
  [[nodiscard]] Outcome<orangefs::Attributes> remove(orangefs::Handle handle);

  [[nodiscard]] Outcome<orangefs::Handle> find_entry(orangefs::Handle dirdata,
                                                     std::string_view name);
  [[nodiscard]] Outcome<void> add_entry(orangefs::Handle dirdata, std::string_view name,
                                        orangefs::Handle target);
  // Both return the handle that the entry had.
  [[nodiscard]] Outcome<orangefs::Handle> remove_entry(orangefs::Handle dirdata,
                                                       std::string_view name);
  [[nodiscard]] Outcome<orangefs::Handle> change_entry(orangefs::Handle dirdata,
                                                       std::string_view name,
                                                       orangefs::Handle target);
  // Up to `limit` entries after `token`, in the order in which they were made; removing entries
  // does not move others.
  [[nodiscard]] Outcome<orangefs::ReaddirResponse> entries(orangefs::Handle dirdata,
                                                           std::uint64_t token,
                                                           std::uint32_t limit);

  enum class IfPresent { replace, must_not_be, must_be };
  [[nodiscard]] Outcome<std::string> extended(orangefs::Handle handle, std::string_view key);
  [[nodiscard]] Outcome<void> set_extended(orangefs::Handle handle,
                                           std::span<const std::string> keys,
                                           std::span<const std::string> values, IfPresent rule);
  [[nodiscard]] Outcome<void> remove_extended(orangefs::Handle handle, std::string_view key);
  [[nodiscard]] Outcome<std::vector<std::string>> extended_keys(orangefs::Handle handle);

  // Up to `limit` handles of metadata objects from `from` on, ascending.
  [[nodiscard]] Outcome<std::vector<orangefs::Handle>> handles(orangefs::Handle from,
                                                               std::uint32_t limit);

 private:
  [[nodiscard]] Outcome<std::uint64_t> take_serials(ChangeSet& changes, std::uint64_t count);
  [[nodiscard]] Outcome<orangefs::Attributes> dirdata(orangefs::Handle handle);
  void put_object(ChangeSet& changes, orangefs::Handle handle,
                  const orangefs::Attributes& attributes);
  // Adds `difference` to the number of entries and sets the times to now.
  void touch_dirdata(ChangeSet& changes, orangefs::Handle handle, orangefs::Attributes attributes,
                     int difference);
  void make_directory(ChangeSet& changes, orangefs::Handle directory, orangefs::Handle dirdata,
                      const orangefs::Attributes& wanted);
  [[nodiscard]] Outcome<void> erase_with_prefix(ChangeSet& changes, std::string_view prefix);

  KeyValueStore& store_;
  const HandleRanges& ranges_;
  std::uint32_t self_;
  WallClock clock_;
  std::uint64_t first_serial_;
};

}  // namespace vpfs::dataserver
