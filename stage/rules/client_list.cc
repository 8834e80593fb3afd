#include "stage/rules/client_list.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/one_line.h"
#include "base/result.h"
#include "stage/rules/address.h"
#include "stage/rules/number_ranges.h"

namespace vpfs::stage {
namespace {

constexpr std::size_t kLongestText = 64 * 1024;  // of all nodes of a job, as its batch system says
constexpr std::size_t kLongestHost = 255;

std::string in_error(std::string_view text) {
  return one_short_line(text, 200);
}
std::unexpected<Error> no_address(std::string_view text) {
  return fail(fmt::format("'{}' is not an IP address or CIDR block", in_error(text)));
}
std::unexpected<Error> too_many(std::string_view text) {
  return fail(fmt::format("'{}' stands for more than {} addresses", in_error(text), kMostClients));
}

// Splits at the dots that are not in brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t start = 0;
  bool inside = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] == '[') inside = true;
    if (at < text.size() && text[at] == ']') inside = false;
    if (at < text.size() && (text[at] != '.' || inside)) continue;
    parts.push_back(text.substr(start, at - start));
    start = at + 1;
  }
  return parts;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Four numbers, "*" or ranges, of which at least one is not a number.
bool is_address_range(const std::vector<std::string_view>& parts) {
  const auto is_range = [](std::string_view part) {
    return part == "*" || (part.starts_with('[') && part.ends_with(']'));
  };
  return parts.size() == 4 && std::ranges::any_of(parts, is_range) &&
         std::ranges::all_of(
             parts, [&](std::string_view part) { return is_range(part) || is_digits(part); });
}

// The CIDR blocks of the addresses from `first` to `last`.
void add_blocks(std::uint64_t first, std::uint64_t last, std::vector<std::string>& clients) {
  while (first <= last) {
    int bits = first == 0 ? 32 : std::min(std::countr_zero(first), 32);
    while (first + (std::uint64_t{1} << bits) - 1 > last) --bits;
    const std::string address = fmt::format("{}.{}.{}.{}", first >> 24, first >> 16 & 255U,
                                            first >> 8 & 255U, first & 255U);
    clients.push_back(bits == 0 ? address : fmt::format("{}/{}", address, 32 - bits));
    first += std::uint64_t{1} << bits;
  }
}

Result<void> add_address_range(std::string_view text, const std::vector<std::string_view>& parts,
                               std::vector<std::string>& clients) {
  std::array<std::vector<NumberRange>, 4> octets;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string_view part = parts[i];
    if (part == "*") {
      octets[i] = {{.first = 0, .last = 255}};
    } else {
      const std::string_view inside = part.front() == '[' ? part.substr(1, part.size() - 2) : part;
      auto ranges = number_ranges(inside, 255);
      if (!ranges) return fail(fmt::format("'{}': {}", in_error(text), ranges.error().message));
      octets[i] = std::move(*ranges);
    }
  }
  // Addresses that differ only behind a range of the octet `last` are adjacent.
  std::size_t last = 3;
  std::uint64_t width = 1;
  const auto is_all = [](const std::vector<NumberRange>& ranges) {
    return ranges.size() == 1 && ranges.front().first == 0 && ranges.front().last == 255;
  };
  for (; last > 0 && is_all(octets[last]); --last) width *= 256;
  std::vector<std::uint64_t> bases = {0};
  for (std::size_t i = 0; i < last; ++i) {
    std::vector<std::uint64_t> next;
    for (const std::uint64_t base : bases) {
      for (const NumberRange& range : octets[i]) {
        for (std::uint64_t each = range.first; each <= range.last; ++each) {
          if (next.size() == kMostClients) return too_many(text);
          next.push_back(base << 8U | each);
        }
      }
    }
    bases = std::move(next);
  }
  const std::size_t before = clients.size();
  for (const std::uint64_t base : bases) {
    for (const NumberRange& range : octets[last]) {
      add_blocks((base << 8U | range.first) * width, (base << 8U | range.last) * width + width - 1,
                 clients);
    }
    if (clients.size() > kMostClients) {
      clients.resize(before);
      return too_many(text);
    }
  }
  return {};
}

// The names of n[1-3]-[a...]: every bracket has numbers.
Result<std::vector<std::string>> host_names(std::string_view text, std::size_t most) {
  std::vector<std::string> names = {""};
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find('['), rest.size());
    if (names.front().size() + open > kLongestHost) return no_address(text);
    for (std::string& name : names) name += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) {
      return fail(fmt::format("'{}': [ is never closed: expected a range such as n[1-128]",
                              in_error(text)));
    }
    const auto ranges = number_ranges(rest.substr(1, close - 1), UINT32_MAX);
    if (!ranges) return fail(fmt::format("'{}': {}", in_error(text), ranges.error().message));
    rest.remove_prefix(close + 1);
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const NumberRange& range : *ranges) {
        if (range.last - range.first >= most - longer.size()) return too_many(text);
        for (std::uint64_t each = range.first; each <= range.last; ++each) {
          longer.push_back(fmt::format("{}{:0{}}", name, each, range.digits));
          if (longer.back().size() > kLongestHost) return no_address(text);
        }
      }
    }
    names = std::move(longer);
  }
  return names;
}

bool is_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}
bool may_be_host(std::string_view text) {
  const auto fits = [](char byte) {
    return is_letter(byte) || std::string_view("0123456789-_.[],").contains(byte);
  };
  return text.size() <= kLongestText && std::ranges::all_of(text, fits) &&
         std::ranges::any_of(text, is_letter) && text.front() != '.';
}

}  // namespace

Result<void> add_clients(std::string_view text, const Names* names,
                         std::vector<std::string>& clients) {
  if (AddressBlock::parse(std::string(text))) {
    if (clients.size() >= kMostClients) return too_many(text);
    clients.emplace_back(text);
    return {};
  }
  const std::vector<std::string_view> parts = parts_of(text);
  if (is_address_range(parts)) return add_address_range(text, parts, clients);
  if (!may_be_host(text)) return no_address(text);
  if (names == nullptr) {
    return fail(fmt::format("'{}': names of hosts cannot be looked up here", in_error(text)));
  }
  const auto hosts = host_names(text, kMostClients);
  VPFS_TRY(hosts);
  const std::size_t before = clients.size();
  for (const std::string& host : *hosts) {
    const std::vector<std::string> addresses = names->addresses(host);
    const bool is_full = clients.size() + addresses.size() > kMostClients;
    if (addresses.empty() || is_full) {
      clients.resize(before);
      if (is_full) return too_many(text);
      return fail(fmt::format("the host '{}' is not known", host));
    }
    clients.insert(clients.end(), addresses.begin(), addresses.end());
  }
  return {};
}

}  // namespace vpfs::stage
