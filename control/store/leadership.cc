#include "control/store/leadership.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace vpfs::control {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLeadershipFormat = 1;
constexpr std::size_t kMostAddresses = 16;
constexpr std::size_t kLongestAddress = 1024;
constexpr std::uint64_t kLongestLease = std::uint64_t{366} * 24 * 3600 * 1'000'000;

Result<std::uint64_t> read_number(const json& object, const char* key) {
  const auto place = object.find(key);
  if (place == object.end() || !place->is_number_unsigned()) {
    return fail(fmt::format("it has no number `{}`", key));
  }
  return place->get<std::uint64_t>();
}

// Addresses are shown to administrators.
bool is_printable(const std::string& text) {
  const auto is_control = [](unsigned char each) { return each < ' ' || each == 0x7f; };
  return text.size() <= kLongestAddress && std::ranges::none_of(text, is_control);
}

// None where the object has no such key.
Result<std::vector<std::string>> read_addresses(const json& object, const char* key) {
  std::vector<std::string> addresses;
  const auto list = object.find(key);
  if (list == object.end()) return addresses;
  if (!list->is_array()) return fail(fmt::format("its `{}` are not a list", key));
  if (list->size() > kMostAddresses) {
    return fail(fmt::format("it has {} addresses in `{}`: expected at most {}", list->size(), key,
                            kMostAddresses));
  }
  for (const json& address : *list) {
    if (!address.is_string()) return fail(fmt::format("an address of `{}` is not a text", key));
    if (!is_printable(address.get_ref<const std::string&>())) {
      return fail(fmt::format("an address of `{}` is not a host and a port, nor a path", key));
    }
    addresses.push_back(address.get<std::string>());
  }
  return addresses;
}

// What records of earlier versions do not have.
Result<void> read_optional_fields(const json& object, Leadership& leadership) {
  if (object.contains("incarnation")) {
    const auto incarnation = read_number(object, "incarnation");
    VPFS_TRY(incarnation);
    leadership.incarnation = *incarnation;
  }
  auto addresses = read_addresses(object, "addresses");
  VPFS_TRY(addresses);
  leadership.addresses = std::move(*addresses);
  auto members = read_addresses(object, "members");
  VPFS_TRY(members);
  leadership.members = std::move(*members);
  if (const auto resigned = object.find("resigned"); resigned != object.end()) {
    if (!resigned->is_boolean()) return fail("its `resigned` is neither true nor false");
    leadership.has_resigned = resigned->get<bool>();
  }
  return {};
}

}  // namespace

std::string to_record(const Leadership& leadership) {
  json object = {{"v", kLeadershipFormat},
                 {"term", leadership.term},
                 {"lease_us", microseconds_of(leadership.lease)},
                 {"transit_us", microseconds_of(leadership.transit)}};
  if (leadership.incarnation != 0) object["incarnation"] = leadership.incarnation;
  if (!leadership.addresses.empty()) object["addresses"] = leadership.addresses;
  if (!leadership.members.empty()) object["members"] = leadership.members;
  if (leadership.has_resigned) object["resigned"] = true;
  return json_text(object);
}

Result<Leadership> parse_leadership(const std::string& record) {
  const json object = json::parse(record, nullptr, false);
  if (!object.is_object()) return fail("it is not a JSON object");
  const auto format = read_number(object, "v");
  VPFS_TRY(format);
  if (*format != kLeadershipFormat) {
    return fail(fmt::format("it has the format {}, which this version does not know", *format));
  }
  const auto term = read_number(object, "term");
  VPFS_TRY(term);
  const auto lease = read_number(object, "lease_us");
  VPFS_TRY(lease);
  const auto transit = read_number(object, "transit_us");
  VPFS_TRY(transit);
  if (*term == 0) return fail("its term is 0");
  if (*term > kLargestTerm) return fail(fmt::format("its term {} is too large", *term));
  if (*lease > kLongestLease || *transit > kLongestLease) {
    return fail("its lease is longer than a year");
  }
  Leadership leadership;
  leadership.term = *term;
  leadership.lease = std::chrono::microseconds(*lease);
  leadership.transit = std::chrono::microseconds(*transit);
  VPFS_TRY(read_optional_fields(object, leadership));
  return leadership;
}

}  // namespace vpfs::control
