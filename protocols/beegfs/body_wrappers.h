#pragma once

#include <cstdint>

#include "protocols/fields.h"

// The wrappers for fields of bodies (protocols/fields.h) that are not plain: plain are an integer,
// an enumerator, a bool of one byte, a struct with fields(), and a text as u32 length, bytes, and a
// NUL that does not count.
namespace vpfs::beegfs {

// An integer that must not be negative.
template <typename T>
struct NotNegative {
  T& value;
};
template <typename T>
[[nodiscard]] NotNegative<T> not_negative(T& value) {
  return {value};
}

// A text with zeros behind it, up to a multiple of 4 from its beginning.
template <typename T>
struct Aligned {
  T& text;
};
template <typename T>
[[nodiscard]] Aligned<T> aligned(T& text) {
  return {text};
}

// There if this feature flag of the message is set.
template <typename T>
struct Flagged {
  std::uint16_t flag;
  T& value;
};
template <typename T>
[[nodiscard]] Flagged<T> flagged(std::uint16_t flag, T& value) {
  return {flag, value};
}

}  // namespace vpfs::beegfs
