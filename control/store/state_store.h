#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vpfs::control {

// Keeps records of slow state, such as changes of rules, over restarts. A record is one line of
// text without control characters; the store does not look into it. Not thread-safe.
class StateStore {
 public:
  struct Record {
    std::string text;
    std::string place;  // its position, for errors: "FILE:17"
  };
  struct Loaded {
    std::vector<Record> records;     // oldest first
    std::vector<std::string> notes;  // what an administrator should know, as sentences
  };

  virtual ~StateStore() = default;

  // All records. Call it once, before anything else. An error means that something is damaged or
  // not readable: what is stored stays as it is.
  [[nodiscard]] virtual Result<Loaded> load() = 0;

  // When it returns, the record survives a crash. After an error the store is as before.
  [[nodiscard]] virtual Result<void> append(std::string_view record) = 0;

  // Replaces all records by one that has their sense. After an error the store has the one or the
  // others.
  [[nodiscard]] virtual Result<void> replace(std::string_view record) = 0;

  // Whether what is stored is still where the next start looks for it: it may have been moved or
  // removed. replace() puts it there again.
  [[nodiscard]] virtual bool is_in_place() const { return true; }

  // Whether replace() would make the store much smaller.
  [[nodiscard]] virtual bool wants_replacing() const = 0;
};

}  // namespace vpfs::control
