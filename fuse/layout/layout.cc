#include "fuse/layout/layout.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/one_line.h"
#include "base/result.h"
#include "fuse/layout/host_list.h"

namespace vpfs::fuse {
namespace {

constexpr std::string_view kAffinity = "affinity:";
constexpr std::string_view kList = "list:";
constexpr std::string_view kListForm = "list:NAME[:NAME...]";
constexpr std::size_t kMostQuoted = 60;  // bytes of a bad layout in its error
constexpr std::size_t kMostNamed = 16;   // servers in the error about one that is not there

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
  struct Liking {
    std::uint64_t hash;
    std::size_t server;
  };
  std::vector<Liking> all;
  all.reserve(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    all.push_back({.hash = hash_of(key, servers[i].alias), .server = i});
  }
  count = std::min(count, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count),
                            [](const Liking& one, const Liking& other) {
                              return one.hash != other.hash ? one.hash > other.hash
                                                            : one.server < other.server;
                            });
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back(all[i].server);
  return best;
}

// The indices below `count` for which the condition holds.
template <typename Condition>
std::vector<std::size_t> those(std::size_t count, Condition condition) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < count; ++i) {
    if (condition(i)) some.push_back(i);
  }
  return some;
}

void make_small(std::string& name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
}

std::string in_quotes(std::string_view text) {
  return fmt::format("'{}'", one_short_line(text, kMostQuoted));
}

Result<Layout> parse_affinity(std::string_view text) {
  Layout layout{.kind = Layout::Kind::affinity};
  const std::string_view number = text.substr(kAffinity.size());
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, layout.servers);
  if (error != std::errc() || at != end || layout.servers == 0 ||
      layout.servers > kMostLayoutServers) {
    return fail(fmt::format("{}: expected affinity:K with K from 1 to {}", in_quotes(text),
                            kMostLayoutServers));
  }
  return layout;
}

Result<Layout> parse_list(std::string_view text) {
  const auto wrong = [text](std::string_view what) {
    return fail(fmt::format("{}: {}; expected {}", in_quotes(text), what, kListForm));
  };
  std::vector<std::string_view> names;
  for (std::string_view rest = text.substr(kList.size()); !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name.empty()) return wrong(fmt::format("name {} is empty", names.size() + 1));
    if (names.size() == kMostLayoutServers) {
      return wrong(fmt::format("more than {} names", kMostLayoutServers));
    }
    names.push_back(name);
  }
  if (names.empty()) return wrong("no server is named");
  Layout layout{.kind = Layout::Kind::list};
  layout.names.assign(names.begin(), names.end());
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return wrong(fmt::format("{} is named twice", in_quotes(*twice)));
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
      "{} is not a layout; expected disperse, affinity:K, local, internal, external or {}",
      in_quotes(text), kListForm));
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

LayoutServers::LayoutServers(std::vector<LayoutServer> servers) : servers_(std::move(servers)) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    by_alias_.emplace(servers_[i].alias, i);
    add_name(servers_[i].alias, i);
    add_name(servers_[i].host, i);
  }
}

void LayoutServers::add_name(std::string_view name, std::size_t index) {
  if (name.empty()) return;
  std::string small(name);
  make_small(small);
  const std::size_t dot = small.find('.');
  if (dot != std::string::npos && dot > 0 && !is_numeric_host(small)) {
    by_label_[small.substr(0, dot)].push_back(index);
  }
  by_name_[std::move(small)].push_back(index);
}

std::optional<std::size_t> LayoutServers::index_of(std::string_view alias) const {
  const auto found = by_alias_.find(alias);
  return found == by_alias_.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<bool>> LayoutServers::on_nodes(std::string_view host_list) const {
  std::vector<bool> on(servers_.size());
  const auto add = [&on](const Names& names, std::string_view name) {
    const auto found = names.find(name);
    if (found == names.end()) return;
    for (const std::size_t index : found->second) on[index] = true;
  };
  std::string small;
  const auto add_node = [&](std::string_view node) {
    small = node;
    make_small(small);
    add(by_name_, small);
    if (is_numeric_host(small)) return;
    const std::size_t dot = small.find('.');
    if (dot == std::string::npos) return add(by_label_, small);
    const std::string_view label = std::string_view(small).substr(0, dot);
    if (!is_numeric_host(label)) add(by_name_, label);
  };
  const Result<void> read = for_each_host(host_list, add_node);
  VPFS_TRY(read);
  return on;
}

std::vector<std::size_t> servers_for(const Layout& layout, const LayoutServers& servers,
                                     const Maker& maker) {
  switch (layout.kind) {
    case Layout::Kind::disperse:
      return {};
    case Layout::Kind::affinity:
      return likeliest(servers.all(), maker.key, layout.servers);
    case Layout::Kind::local:
      return those(servers.size(), [&](std::size_t i) { return servers.all()[i].is_local; });
    case Layout::Kind::internal:
    case Layout::Kind::external: {
      if (maker.job_servers == nullptr) return {};
      const bool on = layout.kind == Layout::Kind::internal;
      return those(servers.size(), [&](std::size_t i) { return (*maker.job_servers)[i] == on; });
    }
    case Layout::Kind::list:
      break;
  }
  std::vector<std::size_t> named;
  for (const std::string& name : layout.names) {
    if (const auto index = servers.index_of(name)) named.push_back(*index);
  }
  return named;
}

Result<void> check_layout(const Layout& layout, const LayoutServers& servers) {
  for (const std::string& name : layout.names) {
    if (servers.index_of(name)) continue;
    std::vector<std::string_view> known;
    for (const LayoutServer& server : servers.all()) {
      if (known.size() == kMostNamed) {
        known.emplace_back("...");
        break;
      }
      known.emplace_back(server.alias);
    }
    return fail(fmt::format("no data server is called {}; there are {}", in_quotes(name),
                            fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace vpfs::fuse
