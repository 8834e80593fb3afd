#include "dataserver/orangefs/metadata_keys.h"

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "protocols/orangefs/message.h"

namespace vpfs::dataserver {

std::string big_endian(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(value >> (56 - 8 * i) & 0xffU);
  }
  return bytes;
}

std::uint64_t from_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

std::string object_key(orangefs::Handle handle) {
  return "o" + big_endian(handle);
}
std::string entry_key(orangefs::Handle dirdata, std::string_view name) {
  return "d" + big_endian(dirdata) + std::string(name);
}
std::string order_prefix(orangefs::Handle dirdata) {
  return "n" + big_endian(dirdata);
}
std::string order_key(orangefs::Handle dirdata, std::uint64_t number) {
  return order_prefix(dirdata) + big_endian(number);
}
std::string extended_key(orangefs::Handle handle, std::string_view key) {
  return "x" + big_endian(handle) + std::string(key);
}

std::string encode(const EntryValue& value) {
  return big_endian(value.number) + big_endian(value.target);
}

Outcome<EntryValue> decode_entry_value(std::string_view bytes) {
  if (bytes.size() != 16) return refuse(EIO);
  return EntryValue{.number = from_big_endian(bytes.substr(0, 8)),
                    .target = from_big_endian(bytes.substr(8))};
}

std::string encode(const orangefs::Attributes& attributes) {
  orangefs::Response response;
  response.body =
      orangefs::AttributesResponse{.op = orangefs::Op::getattr, .attributes = attributes};
  std::vector<std::byte> bytes;
  orangefs::encode_response(response, bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Outcome<orangefs::Attributes> decode_attributes(std::string_view bytes) {
  auto response = orangefs::decode_response(std::as_bytes(std::span(bytes)));
  if (!response) return refuse(EIO);
  auto* body = std::get_if<orangefs::AttributesResponse>(&response->body);
  if (body == nullptr) return refuse(EIO);
  return std::move(body->attributes);
}

}  // namespace vpfs::dataserver
