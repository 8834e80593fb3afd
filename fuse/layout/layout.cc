#include "fuse/layout/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fuse/layout/host_list.h"

namespace vpfs::fuse {
namespace {

constexpr std::string_view kAffinity = "affinity:";
constexpr std::string_view kList = "list:";
constexpr std::size_t kMostServers = 4096;

constexpr std::array<std::pair<std::string_view, Layout::Kind>, 4> kWords = {
    {{"disperse", Layout::Kind::disperse},
     {"local", Layout::Kind::local},
     {"internal", Layout::Kind::internal},
     {"external", Layout::Kind::external}}};

// FNV-1a, with the bits mixed at the end: a digit more in a name changes all of them.
std::uint64_t hash_of(std::string_view key, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&hash](std::string_view text) {
    for (const char each : text) {
      hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    }
    hash *= 0x100000001b3U;
  };
  add(key);
  add(name);
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 33U);
}

// Rendezvous hashing (Thaler and Ravishankar 1998): the servers that like the key most. When a
// server comes or goes, a key changes one of its servers at most.
std::vector<std::size_t> likeliest(std::span<const LayoutServer> servers, std::string_view key,
                                   std::size_t count) {
  std::vector<std::size_t> all(servers.size());
  std::iota(all.begin(), all.end(), 0U);
  std::ranges::sort(all, [&](std::size_t one, std::size_t other) {
    const std::uint64_t first = hash_of(key, servers[one].alias);
    const std::uint64_t second = hash_of(key, servers[other].alias);
    return first != second ? first > second : one < other;
  });
  all.resize(std::min(count, all.size()));
  return all;
}

template <typename Condition>
std::vector<std::size_t> those(std::span<const LayoutServer> servers, Condition condition) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (condition(servers[i])) some.push_back(i);
  }
  return some;
}

bool is_on(const LayoutServer& server, std::span<const std::string> nodes) {
  return std::ranges::any_of(nodes, [&](const std::string& node) {
    return is_same_host(server.host, node) || is_same_host(server.alias, node);
  });
}

std::size_t index_of(std::string_view name, std::span<const LayoutServer> servers) {
  const auto* const found = std::ranges::find(
      std::to_address(servers.begin()), std::to_address(servers.end()), name, &LayoutServer::alias);
  return static_cast<std::size_t>(found - servers.data());
}

Result<Layout> parse_affinity(std::string_view text) {
  Layout layout{.kind = Layout::Kind::affinity};
  const std::string_view number = text.substr(kAffinity.size());
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, layout.servers);
  if (error != std::errc() || at != end || layout.servers == 0 || layout.servers > kMostServers) {
    return fail(fmt::format("'{}': it is affinity:K, with K from 1 to {}", text, kMostServers));
  }
  return layout;
}

Result<Layout> parse_list(std::string_view text) {
  Layout layout{.kind = Layout::Kind::list};
  for (std::string_view rest = text.substr(kList.size()); !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name.empty()) return fail(fmt::format("'{}': a name is empty", text));
    if (std::ranges::find(layout.names, name) != layout.names.end()) {
      return fail(fmt::format("'{}': {} is there twice", text, name));
    }
    layout.names.emplace_back(name);
  }
  if (layout.names.empty() || layout.names.size() > kMostServers) {
    return fail(fmt::format("'{}': it is list:NAME:NAME..., with aliases of servers", text));
  }
  return layout;
}

}  // namespace

Result<Layout> parse_layout(std::string_view text) {
  if (text.starts_with(kAffinity)) return parse_affinity(text);
  if (text.starts_with(kList)) return parse_list(text);
  for (const auto& [word, kind] : kWords) {
    if (text == word) return Layout{.kind = kind};
  }
  return fail(fmt::format(
      "'{}' is no layout; it is disperse, affinity:K, local, internal, external or list:NAME:NAME",
      text));
}

std::string to_text(const Layout& layout) {
  if (layout.kind == Layout::Kind::affinity) return fmt::format("{}{}", kAffinity, layout.servers);
  if (layout.kind == Layout::Kind::list) {
    return fmt::format("{}{}", kList, fmt::join(layout.names, ":"));
  }
  const auto* const word =
      std::ranges::find(kWords, layout.kind, &std::pair<std::string_view, Layout::Kind>::second);
  return std::string(word->first);
}

std::vector<std::size_t> servers_for(const Layout& layout, std::span<const LayoutServer> servers,
                                     const Maker& maker) {
  switch (layout.kind) {
    case Layout::Kind::disperse:
      return {};
    case Layout::Kind::affinity:
      return likeliest(servers, maker.key, layout.servers);
    case Layout::Kind::local:
      return those(servers, [](const LayoutServer& server) { return server.is_local; });
    case Layout::Kind::internal:
      return those(servers, [&](const LayoutServer& server) { return is_on(server, maker.nodes); });
    case Layout::Kind::external:
      if (maker.nodes.empty()) return {};
      return those(servers,
                   [&](const LayoutServer& server) { return !is_on(server, maker.nodes); });
    case Layout::Kind::list:
      break;
  }
  std::vector<std::size_t> named;
  for (const std::string& name : layout.names) {
    const std::size_t index = index_of(name, servers);
    if (index < servers.size()) named.push_back(index);
  }
  return named;
}

Result<void> check_layout(const Layout& layout, std::span<const LayoutServer> servers) {
  for (const std::string& name : layout.names) {
    if (index_of(name, servers) < servers.size()) continue;
    std::vector<std::string_view> known;
    for (const LayoutServer& server : servers) known.emplace_back(server.alias);
    return fail(
        fmt::format("no data server is called '{}'; there are {}", name, fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace vpfs::fuse
