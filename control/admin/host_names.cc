#include "control/admin/host_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "control/wire/accounts.h"

namespace vpfs::control {
namespace {

std::vector<std::string> look_up_host(const std::string& host) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<std::string> found;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &list) != 0) return found;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text = {};
    const void* address = nullptr;
    if (each->ai_family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr;
    } else if (each->ai_family == AF_INET6) {
      address = &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr;
    }
    if (address == nullptr) continue;
    if (inet_ntop(each->ai_family, address, text.data(), text.size()) == nullptr) continue;
    if (std::ranges::find(found, text.data()) == found.end()) found.emplace_back(text.data());
  }
  freeaddrinfo(list);
  return found;
}

class Databases final : public stage::Names {
 public:
  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override {
    return user_id(name);
  }
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override {
    return group_id(name);
  }
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override {
    return look_up_host(host);
  }
};

const stage::Names& databases_of_host() {
  static const Databases databases;
  return databases;
}

}  // namespace

struct HostNames::Kept {
  explicit Kept(const stage::Names& from) : databases(from) {}

  const stage::Names& databases;
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::optional<std::uint32_t>> users;
  std::map<std::string, std::optional<std::uint32_t>> groups;
  std::map<std::string, std::vector<std::string>> hosts;
  std::set<std::string> own_names;
  std::vector<std::string> own_addresses;

  // The name service may know other hosts by this one's name, or be slow, or silent.
  std::vector<std::string> look_up(const std::string& host) {
    {
      const std::lock_guard lock(mutex);
      if (own_names.contains(host) && !own_addresses.empty()) return {own_addresses.front()};
    }
    return databases.addresses(host);
  }

  // Other requests do not wait while a name is looked up.
  template <typename Answers, typename LookUp>
  typename Answers::mapped_type find(Answers& answers, const std::string& name, LookUp&& look_up) {
    auto found = look_up(name);
    const std::lock_guard lock(mutex);
    return answers.insert_or_assign(name, std::move(found)).first->second;
  }
  // Nothing: it is not kept, or kept as unknown.
  template <typename Answers>
  std::optional<typename Answers::mapped_type> known(const Answers& answers,
                                                     const std::string& name) {
    const std::lock_guard lock(mutex);
    const auto found = answers.find(name);
    if (found == answers.end() || found->second == typename Answers::mapped_type()) {
      return std::nullopt;
    }
    return found->second;
  }
  template <typename Answers, typename LookUp>
  typename Answers::mapped_type answer(Answers& answers, const std::string& name,
                                       LookUp&& look_up) {
    {
      const std::lock_guard lock(mutex);
      const auto known = answers.find(name);
      if (known != answers.end()) return known->second;
    }
    return find(answers, name, look_up);
  }
};

std::uint32_t NotedNames::user(const std::string& name) {
  const auto known = names_.kept_->known(names_.kept_->users, name);
  if (!known) wanted_.users.insert(name);
  return answers_.users[name] = known ? **known : 0;
}

std::uint32_t NotedNames::group(const std::string& name) {
  const auto known = names_.kept_->known(names_.kept_->groups, name);
  if (!known) wanted_.groups.insert(name);
  return answers_.groups[name] = known ? **known : 0;
}

std::vector<std::string> NotedNames::addresses(const std::string& host) {
  const auto known = names_.kept_->known(names_.kept_->hosts, host);
  if (!known) wanted_.hosts.insert(host);
  return answers_.hosts[host] = known ? *known : std::vector<std::string>{"127.0.0.1"};
}

WantedNames NotedNames::Answers::names() const {
  WantedNames names;
  for (const auto& [name, id] : users) names.users.insert(name);
  for (const auto& [name, id] : groups) names.groups.insert(name);
  for (const auto& [name, addresses] : hosts) names.hosts.insert(name);
  return names;
}

bool NotedNames::Answers::hold(const HostNames& names) const {
  const auto is_user = [&](const auto& each) { return names.user(each.first) == each.second; };
  const auto is_group = [&](const auto& each) { return names.group(each.first) == each.second; };
  const auto is_host = [&](const auto& each) { return names.addresses(each.first) == each.second; };
  return std::ranges::all_of(users, is_user) && std::ranges::all_of(groups, is_group) &&
         std::ranges::all_of(hosts, is_host);
}

HostNames::HostNames() : HostNames(databases_of_host()) {}

HostNames::HostNames(const stage::Names& databases) : kept_(std::make_shared<Kept>(databases)) {}

void HostNames::set_own(std::set<std::string> names, std::vector<std::string> addresses) {
  const std::lock_guard lock(kept_->mutex);
  if (names == kept_->own_names && addresses == kept_->own_addresses) return;
  for (const std::string& name : kept_->own_names) kept_->hosts.erase(name);
  for (const std::string& name : names) {
    kept_->hosts.erase(name);
    if (!addresses.empty()) kept_->hosts[name] = {addresses.front()};
  }
  kept_->own_names = std::move(names);
  kept_->own_addresses = std::move(addresses);
}

std::optional<std::uint32_t> HostNames::user(const std::string& name) const {
  if (noted_ != nullptr) return noted_->user(name);
  return kept_->answer(kept_->users, name,
                       [this](const std::string& each) { return kept_->databases.user(each); });
}

std::optional<std::uint32_t> HostNames::group(const std::string& name) const {
  if (noted_ != nullptr) return noted_->group(name);
  return kept_->answer(kept_->groups, name,
                       [this](const std::string& each) { return kept_->databases.group(each); });
}

std::vector<std::string> HostNames::addresses(const std::string& host) const {
  if (noted_ != nullptr) return noted_->addresses(host);
  return kept_->answer(kept_->hosts, host,
                       [this](const std::string& name) { return kept_->look_up(name); });
}

void HostNames::find_user(const std::string& name) const {
  (void)kept_->find(kept_->users, name,
                    [this](const std::string& each) { return kept_->databases.user(each); });
}

void HostNames::find_group(const std::string& name) const {
  (void)kept_->find(kept_->groups, name,
                    [this](const std::string& each) { return kept_->databases.group(each); });
}

void HostNames::find_host(const std::string& name) const {
  (void)kept_->find(kept_->hosts, name,
                    [this](const std::string& each) { return kept_->look_up(each); });
}

WantedNames HostNames::not_kept(const WantedNames& names) const {
  WantedNames others;
  const std::lock_guard lock(kept_->mutex);
  const auto copy = [](const auto& wanted, const auto& kept, auto& to) {
    std::ranges::copy_if(wanted, std::inserter(to, to.end()),
                         [&](const std::string& each) { return !kept.contains(each); });
  };
  copy(names.users, kept_->users, others.users);
  copy(names.groups, kept_->groups, others.groups);
  copy(names.hosts, kept_->hosts, others.hosts);
  return others;
}

WantedNames HostNames::missing(const WantedNames& names) const {
  WantedNames unknown;
  const std::lock_guard lock(kept_->mutex);
  for (const std::string& each : names.users) {
    const auto known = kept_->users.find(each);
    if (known == kept_->users.end() || !known->second) unknown.users.insert(each);
  }
  for (const std::string& each : names.groups) {
    const auto known = kept_->groups.find(each);
    if (known == kept_->groups.end() || !known->second) unknown.groups.insert(each);
  }
  for (const std::string& each : names.hosts) {
    const auto known = kept_->hosts.find(each);
    if (known == kept_->hosts.end() || known->second.empty()) unknown.hosts.insert(each);
  }
  return unknown;
}

void HostNames::bound(std::size_t most) {
  const std::lock_guard lock(kept_->mutex);
  if (kept_->users.size() + kept_->groups.size() + kept_->hosts.size() <= most) return;
  kept_->users.clear();
  kept_->groups.clear();
  kept_->hosts.clear();
}

}  // namespace vpfs::control
