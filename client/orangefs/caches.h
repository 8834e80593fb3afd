#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "client/orangefs/caller.h"
#include "client/orangefs/caller_table.h"
#include "protocols/orangefs/basic_types.h"

namespace vpfs::client {

// What the sessions of one mount remember: attributes with their capability, and the handles of
// names, each as a server told them to one caller. Names that do not exist are not kept.
//
// An entry is at most its timeout old, from the moment when it was asked for. What a session of the
// mount changes is forgotten at once, for all callers; what other clients change is seen after the
// timeout. Any thread may call.
class Caches {
 public:
  using AttributesPtr = std::shared_ptr<const orangefs::Attributes>;  // shared with its readers
  using AttributesTicket = CallerTable<AttributesPtr>::Ticket;
  using NameTicket = CallerTable<orangefs::Handle>::Ticket;

  // At most `most_entries` attributes and as many names.
  Caches(Duration attribute_timeout, Duration name_timeout, std::size_t most_entries)
      : attributes_(attribute_timeout, most_entries), names_(name_timeout, most_entries) {}

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

  // The object has changed or is gone: its attributes, and the names in it, which its permissions
  // show or hide.
  void forget(orangefs::Handle object) {
    attributes_.forget(object);
    names_.forget(object);
  }
  // Only its attributes, such as a capability that was refused.
  void forget_attributes(orangefs::Handle object) { attributes_.forget(object); }
  // The name may lead elsewhere or nowhere. The directory's attributes stay: neither its layout nor
  // its capability changes with its entries.
  void forget_name(orangefs::Handle directory, std::string_view name) {
    names_.forget(directory, name);
  }

  [[nodiscard]] std::size_t entries() const { return attributes_.size() + names_.size(); }

 private:
  CallerTable<AttributesPtr> attributes_;
  CallerTable<orangefs::Handle> names_;
};

}  // namespace vpfs::client
