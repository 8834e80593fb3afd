#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataserver/store/key_value_store.h"

namespace vpfs::dataserver {

// Forgets everything at the end of the process.
class MemoryKeyValueStore final : public KeyValueStore {
 public:
  Outcome<std::string> get(std::string_view key) override;
  Outcome<Entry> first_from(std::string_view from) override;
  Outcome<void> begin() override;
  Outcome<void> put(std::string_view key, std::string_view value) override;
  Outcome<void> erase(std::string_view key) override;
  Outcome<void> apply() override;
  void undo() override;
  net::Task<Outcome<void>> make_durable() override;

 private:
  void remember(std::string_view key);

  std::map<std::string, std::string, std::less<>> entries_;
  // The values that the open set's keys had before it.
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace vpfs::dataserver
