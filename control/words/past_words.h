#pragma once

#include <cstdint>
#include <string>

#include "control/words/site_past.h"

// Words and numbers for what was done in a time of the past.
namespace vpfs::words {

// A part of 1: "71%".
[[nodiscard]] std::string percent_text(double part);
// "15.1 MiB", with one digit behind the point.
[[nodiscard]] std::string size_text(std::uint64_t bytes);
// "4.0 MiB/s"; "-" for no time.
[[nodiscard]] std::string rate_text(std::uint64_t bytes, std::uint64_t microseconds);
// The mean of so many: "3.2 ms"; "-" for none.
[[nodiscard]] std::string mean_text(std::uint64_t sum_us, std::uint64_t count);
// About that: "40 s", "10 min".
[[nodiscard]] std::string length_text(std::uint64_t microseconds);
// "at s0", "at 3 servers". REQUIRES: there is one.
[[nodiscard]] std::string servers_text(const SitePast& past);
// Cost as the bytes that it moved for so much. Requests cost more than their bytes.
[[nodiscard]] std::uint64_t as_bytes(std::uint64_t cost, const control::PastOf& who);
// A cost that a stage tells as a number with a fraction: 0 for none or nonsense, and bounded.
[[nodiscard]] std::uint64_t whole_cost(double amount);
// What it got of what it was entitled to; 1 if that is nothing.
[[nodiscard]] double delivered_part(const control::PastOf& who);

}  // namespace vpfs::words
