#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "client/orangefs/calls/caller.h"
#include "client/orangefs/calls/caller_table.h"
#include "client/orangefs/directory_changes.h"
#include "client/orangefs/stat.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// What the sessions of one mount remember: attributes with their capability, the handles of names,
// and what directories are, each as servers told them to one caller. Names that do not exist are
// not kept.
//
// An entry is at most its timeout old, from the moment when it was asked for. Changes by a session
// of the mount invalidate entries at once, for all callers. Changes by other clients are seen after
// the timeout. Any thread may call.
class Caches {
 public:
  using AttributesPtr = std::shared_ptr<const orangefs::Attributes>;  // shared with its readers
  using AttributesTicket = CallerTable<AttributesPtr>::Ticket;
  using NameTicket = CallerTable<orangefs::Handle>::Ticket;

  struct KnownDirectory {
    Stat stat;
    TimePoint until;  // when it is to be asked for again
  };

 private:
  struct Described {
    Stat stat;
    TimePoint asked;
  };

 public:
  using DirectoryTicket = CallerTable<Described>::Ticket;

  // At most `most_entries` attributes and as many names.
  Caches(Duration attribute_timeout, Duration name_timeout, std::size_t most_entries)
      : attributes_(attribute_timeout, most_entries),
        names_(name_timeout, most_entries),
        directories_(attribute_timeout, most_entries),
        attribute_timeout_(attribute_timeout),
        changes_(attribute_timeout) {}

  // Null when they are not known.
  [[nodiscard]] AttributesPtr attributes(orangefs::Handle object, const Caller& caller,
                                         TimePoint now) {
    return attributes_.find(object, "", caller, now).value_or(nullptr);
  }
  // Take the ticket before sending the question (caller_table.h).
  [[nodiscard]] AttributesTicket attributes_ticket(orangefs::Handle object, TimePoint now) const {
    return attributes_.ticket(object, "", now);
  }
  void put_attributes(const AttributesTicket& ticket, orangefs::Handle object,
                      const CallerPtr& caller, AttributesPtr attributes) {
    attributes_.put(ticket, object, "", caller, std::move(attributes));
  }

  [[nodiscard]] std::optional<orangefs::Handle> name(orangefs::Handle directory,
                                                     std::string_view name, const Caller& caller,
                                                     TimePoint now) {
    return names_.find(directory, name, caller, now);
  }
  [[nodiscard]] NameTicket name_ticket(orangefs::Handle directory, std::string_view name,
                                       TimePoint now) const {
    return names_.ticket(directory, name, now);
  }
  void put_name(const NameTicket& ticket, orangefs::Handle directory, std::string name,
                const CallerPtr& caller, orangefs::Handle handle) {
    names_.put(ticket, directory, std::move(name), caller, handle);
  }
  // A session of the mount has made the name, for this object. Take the ticket before.
  void name_made(const NameTicket& ticket, orangefs::Handle directory, std::string name,
                 const CallerPtr& caller, orangefs::Handle handle) {
    names_.change(ticket, directory, std::move(name), caller, handle);
  }

  // With the times of what the mount itself has changed in it since it was asked for.
  [[nodiscard]] std::optional<KnownDirectory> directory(orangefs::Handle handle,
                                                        const Caller& caller, TimePoint now) {
    const std::optional<Described> found = directories_.find(handle, "", caller, now);
    if (!found) return std::nullopt;
    KnownDirectory known{.stat = found->stat, .until = found->asked + attribute_timeout_};
    if (const auto changed = changes_.since(handle, found->asked)) {
      known.stat.mtime = std::max(known.stat.mtime, *changed);
      known.stat.ctime = std::max(known.stat.ctime, *changed);
    }
    return known;
  }
  [[nodiscard]] DirectoryTicket directory_ticket(orangefs::Handle handle, TimePoint now) const {
    return directories_.ticket(handle, "", now);
  }
  void put_directory(const DirectoryTicket& ticket, orangefs::Handle handle,
                     const CallerPtr& caller, const Stat& stat) {
    directories_.put(ticket, handle, "", caller, {.stat = stat, .asked = ticket.asked});
  }
  // A session of the mount has changed its entries. `seconds`: the same time, since the epoch.
  void entries_changed(orangefs::Handle directory, std::uint64_t seconds, TimePoint now) {
    changes_.note(directory, seconds, now);
  }
  // Whether its entries have changed is unknown.
  void forget_directory(orangefs::Handle handle) { directories_.forget(handle); }

  // The object has changed or is gone: its attributes, and the names in it, which its permissions
  // show or hide.
  void forget(orangefs::Handle object) {
    attributes_.forget(object);
    names_.forget(object);
    directories_.forget(object);
  }
  // Only its attributes, such as a capability that was refused.
  void forget_attributes(orangefs::Handle object) { attributes_.forget(object); }
  // The name may lead elsewhere or nowhere. The directory's attributes stay: neither its layout nor
  // its capability changes with its entries.
  void forget_name(orangefs::Handle directory, std::string_view name) {
    names_.forget(directory, name);
  }

  [[nodiscard]] std::size_t entries() const {
    return attributes_.size() + names_.size() + directories_.size();
  }

 private:
  CallerTable<AttributesPtr> attributes_;
  CallerTable<orangefs::Handle> names_;
  CallerTable<Described> directories_;
  Duration attribute_timeout_;
  DirectoryChanges changes_;
};

}  // namespace vpfs::client
