#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "stage/book/live_rules.h"
#include "stage/book/operation.h"

// Operations and states of a rule book as records of a journal, each one line of JSON:
//
//   {"v":2,"n":17,"at":1795348800,"who":"alice (uid 1001)","op":"rule_start",
//    "rule":{"name":"backup","condition":"client=10.0.0.9","words":["rate=100MiB/s"]}}
//
// `n` counts operations without a gap. Version 1 had none. Members that are not known are skipped;
// an operation that is not known is an error, since what follows depends on it.
namespace vpfs::stage {

struct BookRecord {
  std::optional<std::uint64_t> number;  // none: version 1
  std::variant<BookOperation, BookState> what;
};

// Nothing: a text of the operation is not UTF-8.
[[nodiscard]] std::optional<std::string> to_record(const BookOperation& operation,
                                                   std::uint64_t number);
// The whole state; its number is the record's. REQUIRES: all its texts came from records.
[[nodiscard]] std::string to_record(const BookState& state);

// The error says what is wrong and what to do, in one line.
[[nodiscard]] std::expected<BookRecord, std::string> read_record(std::string_view line);

}  // namespace vpfs::stage
