#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "control/store/state_store.h"

namespace vpfs::coordinator {

// A coordinator's time in office, as those after it need to know.
struct Term {
  std::uint64_t number = 0;
  // The lease of its cycles: its caps may be in force for so long after its end.
  Duration lease = {};
  Duration transit = {};
  bool operator==(const Term&) const = default;
};

// Remembers the last term over restarts, so that the next one is above it. The store is fsynced, so
// a term that was ever used is there.
class TermStore {
 public:
  explicit TermStore(std::unique_ptr<control::StateStore> store) : store_(std::move(store)) {}

  // The last one; nothing: there was none. The error names the place of what is damaged.
  [[nodiscard]] Result<std::optional<Term>> load();
  // After load(): the least term that was never used, also if a line was lost at the end.
  [[nodiscard]] std::uint64_t next() const { return next_; }
  // When it returns, the next load() gives this one.
  [[nodiscard]] Result<void> begin(const Term& term);

 private:
  std::unique_ptr<control::StateStore> store_;
  std::uint64_t next_ = 1;
};

[[nodiscard]] std::string to_record(const Term& term);
// The error says what is wrong with the text.
[[nodiscard]] Result<Term> parse_term(const std::string& record);

}  // namespace vpfs::coordinator
