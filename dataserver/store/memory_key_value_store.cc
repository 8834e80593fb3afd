#include "dataserver/store/memory_key_value_store.h"

#include <cerrno>

namespace vpfs::dataserver {

Outcome<std::string> MemoryKeyValueStore::get(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return refuse(ENOENT);
  return found->second;
}

Outcome<KeyValueStore::Entry> MemoryKeyValueStore::first_from(std::string_view from) {
  const auto found = entries_.lower_bound(from);
  if (found == entries_.end()) return refuse(ENOENT);
  return Entry{.key = found->first, .value = found->second};
}

Outcome<void> MemoryKeyValueStore::begin() {
  before_.clear();
  return {};
}

void MemoryKeyValueStore::remember(std::string_view key) {
  const auto found = entries_.find(key);
  before_.emplace_back(
      key, found == entries_.end() ? std::nullopt : std::optional<std::string>(found->second));
}

Outcome<void> MemoryKeyValueStore::put(std::string_view key, std::string_view value) {
  remember(key);
  entries_.insert_or_assign(std::string(key), std::string(value));
  return {};
}

Outcome<void> MemoryKeyValueStore::erase(std::string_view key) {
  remember(key);
  if (const auto found = entries_.find(key); found != entries_.end()) entries_.erase(found);
  return {};
}

Outcome<void> MemoryKeyValueStore::apply() {
  before_.clear();
  return {};
}

void MemoryKeyValueStore::undo() {
  for (auto change = before_.rbegin(); change != before_.rend(); ++change) {
    if (change->second) {
      entries_.insert_or_assign(change->first, *change->second);
    } else {
      entries_.erase(change->first);
    }
  }
  before_.clear();
}

net::Task<Outcome<void>> MemoryKeyValueStore::make_durable() {
  co_return Outcome<void>();
}

}  // namespace vpfs::dataserver
