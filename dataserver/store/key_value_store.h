#pragma once

#include <string>
#include <string_view>

#include "dataserver/store/outcome.h"
#include "net/async.h"

namespace vpfs::dataserver {

// An ordered map of byte strings with change sets. It holds the name space.
//
// A change set is all or nothing. Only one is open at a time, and no coroutine suspends within it.
// Reads see the changes of the open set and of all applied ones. Keys are at most kMostKeySize.
class KeyValueStore {
 public:
  static constexpr std::size_t kMostKeySize = 500;

  struct Entry {
    std::string key;
    std::string value;
  };

  virtual ~KeyValueStore() = default;

  // ENOENT when there is no such key.
  [[nodiscard]] virtual Outcome<std::string> get(std::string_view key) = 0;
  // The first entry at or after `from`; ENOENT when there is none.
  [[nodiscard]] virtual Outcome<Entry> first_from(std::string_view from) = 0;

  [[nodiscard]] virtual Outcome<void> begin() = 0;
  // Requires an open change set. After a failure only undo() is left.
  [[nodiscard]] virtual Outcome<void> put(std::string_view key, std::string_view value) = 0;
  // A missing key is not an error.
  [[nodiscard]] virtual Outcome<void> erase(std::string_view key) = 0;
  [[nodiscard]] virtual Outcome<void> apply() = 0;
  virtual void undo() = 0;

  // Waits until everything applied so far survives a crash. Sets that were applied in one turn of
  // the event loop become durable together.
  [[nodiscard]] virtual net::Task<Outcome<void>> make_durable() = 0;
};

// An open change set; undone unless applied.
class ChangeSet {
 public:
  explicit ChangeSet(KeyValueStore& store)
      : store_(store), result_(store.begin()), open_(result_.has_value()) {}
  ~ChangeSet() {
    if (open_) store_.undo();
  }
  ChangeSet(const ChangeSet&) = delete;
  ChangeSet& operator=(const ChangeSet&) = delete;

  // Errors stick: the first one is what apply() returns.
  void put(std::string_view key, std::string_view value) {
    if (result_) result_ = store_.put(key, value);
  }
  void erase(std::string_view key) {
    if (result_) result_ = store_.erase(key);
  }
  [[nodiscard]] Outcome<void> apply() {
    if (!result_) return result_;
    open_ = false;
    return store_.apply();
  }

 private:
  KeyValueStore& store_;
  Outcome<void> result_;
  bool open_;
};

}  // namespace vpfs::dataserver
