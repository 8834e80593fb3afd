#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataserver/store/outcome.h"
#include "protocols/orangefs/basic_types.h"

// The keys and values in which Metadata keeps its objects.
namespace vpfs::dataserver {

inline constexpr std::string_view kSerialKey = "s";

[[nodiscard]] std::string big_endian(std::uint64_t value);
[[nodiscard]] std::uint64_t from_big_endian(std::string_view bytes);

[[nodiscard]] std::string object_key(orangefs::Handle handle);
[[nodiscard]] std::string entry_key(orangefs::Handle dirdata, std::string_view name);
[[nodiscard]] std::string order_prefix(orangefs::Handle dirdata);
[[nodiscard]] std::string order_key(orangefs::Handle dirdata, std::uint64_t number);
[[nodiscard]] std::string extended_key(orangefs::Handle handle, std::string_view key);

struct EntryValue {
  std::uint64_t number = 0;
  orangefs::Handle target = 0;
};
[[nodiscard]] std::string encode(const EntryValue& value);
[[nodiscard]] Outcome<EntryValue> decode_entry_value(std::string_view bytes);

// Objects are stored as the payload of a GETATTR response, so that one encoding serves both. EIO
// when the bytes are malformed.
[[nodiscard]] std::string encode(const orangefs::Attributes& attributes);
[[nodiscard]] Outcome<orangefs::Attributes> decode_attributes(std::string_view bytes);

}  // namespace vpfs::dataserver
