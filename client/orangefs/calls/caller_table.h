#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "client/orangefs/calls/caller.h"
#include "protocols/orangefs/types.h"

namespace vpfs::client {

// Answers of servers about an object, or about a name in it, each for one caller and for a time.
//
// A bounded number is kept: the oldest goes first. An answer enters with a ticket that was taken
// before the question was sent; it is dropped when the table was told to forget its object or name
// since then. So an answer from before a change never enters after the change.
//
// Any thread may call. Two callers with the same uid, gid and groups are one; their job does not
// matter.
template <typename Value>
class CallerTable {
 public:
  // When the question was asked, and what had changed by then.
  struct Ticket {
    std::uint64_t generation = 0;
    TimePoint asked = {};
  };

  CallerTable(Duration timeout, std::size_t most_entries)
      : timeout_(timeout), most_in_shard_(std::max<std::size_t>(most_entries / kShards, 1)) {}

  [[nodiscard]] Ticket ticket(orangefs::Handle object, std::string_view name, TimePoint now) const {
    const Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    return {.generation = shard.generation(object, name), .asked = now};
  }

  // `caller` is not null.
  void put(const Ticket& ticket, orangefs::Handle object, std::string name, const CallerPtr& caller,
           Value value) {
    if (timeout_ <= Duration::zero()) return;
    Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    if (shard.generation(object, name) == ticket.generation) {
      shard.enter({.object = object, .name = std::move(name), .caller = caller},
                  {.value = std::move(value), .end = ticket.asked + timeout_, .place = {}},
                  most_in_shard_);
    }
  }

  // forget() of a name that the caller has given a new value, which is known from now on. The
  // ticket was taken before the change was asked for.
  void change(const Ticket& ticket, orangefs::Handle object, std::string name,
              const CallerPtr& caller, Value value) {
    Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    const bool alone = shard.generation(object, name) == ticket.generation;
    shard.forget(object, name);
    if (!alone || timeout_ <= Duration::zero()) return;
    shard.enter({.object = object, .name = std::move(name), .caller = caller},
                {.value = std::move(value), .end = ticket.asked + timeout_, .place = {}},
                most_in_shard_);
  }

  [[nodiscard]] std::optional<Value> find(orangefs::Handle object, std::string_view name,
                                          const Caller& caller, TimePoint now) {
    Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.entries.find(KeyView{object, name, &caller});
    if (found == shard.entries.end()) return std::nullopt;
    if (found->second.end <= now) {
      shard.erase(found);
      return std::nullopt;
    }
    return found->second.value;
  }

  // Everything about the object, for all callers.
  void forget(orangefs::Handle object) {
    Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    ++shard.generations[slot_of(object)];
    shard.erase_from(KeyView{object, {}, nullptr},
                     [object](const Key& key) { return key.object == object; });
  }
  // What is known about one name in it.
  void forget(orangefs::Handle object, std::string_view name) {
    Shard& shard = shard_of(object);
    const std::lock_guard lock(shard.mutex);
    shard.forget(object, name);
  }

  [[nodiscard]] std::size_t size() const {
    std::size_t sum = 0;
    for (const Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      sum += shard.entries.size();
    }
    return sum;
  }

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kSlots = 256;
  // Handles are numbered in rows: 2^64 over the golden ratio spreads them.
  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;

  struct Key {
    orangefs::Handle object = 0;
    std::string name;
    CallerPtr caller;
  };
  // A null caller sorts before all others.
  struct KeyView {
    orangefs::Handle object = 0;
    std::string_view name;
    const Caller* caller = nullptr;
  };
  static KeyView view(const Key& key) { return {key.object, key.name, key.caller.get()}; }
  static KeyView view(const KeyView& key) { return key; }

  struct Less {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    template <typename A, typename B>
    bool operator()(const A& left, const B& right) const {
      return order(view(left), view(right)) < 0;
    }
    static std::strong_ordering order(const KeyView& a, const KeyView& b) {
      if (const auto by = a.object <=> b.object; by != 0) return by;
      if (const auto by = a.name <=> b.name; by != 0) return by;
      if (a.caller == b.caller) return std::strong_ordering::equal;
      if (a.caller == nullptr || b.caller == nullptr) {
        return (a.caller != nullptr) <=> (b.caller != nullptr);
      }
      if (const auto by = a.caller->uid <=> b.caller->uid; by != 0) return by;
      if (const auto by = a.caller->gid <=> b.caller->gid; by != 0) return by;
      return a.caller->groups <=> b.caller->groups;
    }
  };

  struct Entry;
  using Entries = std::map<Key, Entry, Less>;
  using ByAge = std::list<typename Entries::iterator>;
  struct Entry {
    Value value;
    TimePoint end;
    typename ByAge::iterator place;
  };

  static std::size_t slot_of(orangefs::Handle object) { return (object * kSpread >> 32) % kSlots; }
  static std::size_t slot_of(orangefs::Handle object, std::string_view name) {
    return (slot_of(object) + std::hash<std::string_view>()(name)) % kSlots;
  }

  struct alignas(64) Shard {
    // Grows when the object or the name is forgotten, or another one in their slots.
    [[nodiscard]] std::uint64_t generation(orangefs::Handle object, std::string_view name) const {
      return generations[slot_of(object)] + generations[slot_of(object, name)];
    }
    void erase(typename Entries::iterator entry) {
      by_age.erase(entry->second.place);
      entries.erase(entry);
    }
    template <typename Belongs>
    void erase_from(const KeyView& first, Belongs belongs) {
      auto at = entries.lower_bound(first);
      while (at != entries.end() && belongs(at->first)) erase(at++);
    }

    void forget(orangefs::Handle object, std::string_view name) {
      ++generations[slot_of(object, name)];
      erase_from(KeyView{object, name, nullptr}, [object, name](const Key& key) {
        return key.object == object && key.name == name;
      });
    }
    void enter(Key key, Entry entry, std::size_t most) {
      if (const auto old = entries.find(view(key)); old != entries.end()) {
        if (old->second.end > entry.end) return;  // a later question was answered sooner
        erase(old);
      }
      const auto made = entries.emplace(std::move(key), std::move(entry));
      by_age.push_back(made.first);
      made.first->second.place = std::prev(by_age.end());
      if (entries.size() > most) erase(by_age.front());
    }

    mutable std::mutex mutex;
    Entries entries;
    ByAge by_age;  // the oldest first
    std::array<std::uint64_t, kSlots> generations = {};
  };

  [[nodiscard]] Shard& shard_of(orangefs::Handle object) {
    return shards_[(object * kSpread >> 48) % kShards];
  }
  [[nodiscard]] const Shard& shard_of(orangefs::Handle object) const {
    return shards_[(object * kSpread >> 48) % kShards];
  }

  Duration timeout_;
  std::size_t most_in_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace vpfs::client
