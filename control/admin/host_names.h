#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stage/rules/names.h"

namespace vpfs::control {

// Names that have to be looked up.
struct WantedNames {
  std::set<std::string> users;
  std::set<std::string> groups;
  std::set<std::string> hosts;

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return users.size() + groups.size() + hosts.size(); }
  void merge(WantedNames others) {
    users.merge(others.users);
    groups.merge(others.groups);
    hosts.merge(others.hosts);
  }
};

class NotedNames;

// The users, groups and hosts that this machine knows (nsswitch.conf says from where). A name that
// is not kept is looked up, which may take long: NameLookups does it beforehand, and NotedNames
// says for which names. Any thread may call; the copies share what they keep.
class HostNames final : public stage::Names {
 public:
  HostNames();
  // Keeps what `databases` knows, instead of this machine; it outlives all copies.
  explicit HostNames(const stage::Names& databases);

  // The names of this host, and its addresses, the best one first. Such a name has the first
  // address, whatever the databases say, and they are not asked.
  void set_own(std::set<std::string> names, std::vector<std::string> addresses);

  [[nodiscard]] std::optional<std::uint32_t> user(const std::string& name) const override;
  [[nodiscard]] std::optional<std::uint32_t> group(const std::string& name) const override;
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host) const override;

  // Those that are not kept, or kept as unknown.
  [[nodiscard]] WantedNames missing(const WantedNames& names) const;
  // Those that were never looked up, or whose look-up has not ended.
  [[nodiscard]] WantedNames not_kept(const WantedNames& names) const;
  // Look a name up anew.
  void find_user(const std::string& name) const;
  void find_group(const std::string& name) const;
  void find_host(const std::string& name) const;
  // Forgets all if there are more than so many.
  void bound(std::size_t most);

 private:
  friend NotedNames;
  struct Kept;
  std::shared_ptr<Kept> kept_;           // shared with look-ups whose callers have gone
  mutable NotedNames* noted_ = nullptr;  // of the thread that reads with this copy
};

// While it lives, no name is looked up: one that is not kept, or kept as unknown, gets a made-up
// answer, and is noted. At the end, the reader of a text knows whether the result counts, or which
// names to look up before it reads the text again.
class NotedNames {
 public:
  // `names` outlives it. No other thread uses that copy meanwhile.
  explicit NotedNames(const HostNames& names) : names_(names) { names_.noted_ = this; }
  ~NotedNames() { names_.noted_ = nullptr; }
  NotedNames(const NotedNames&) = delete;
  NotedNames& operator=(const NotedNames&) = delete;

  // Those with made-up answers.
  [[nodiscard]] const WantedNames& wanted() const { return wanted_; }
  // The answers, made-up ones too.
  struct Answers {
    std::map<std::string, std::uint32_t> users;
    std::map<std::string, std::uint32_t> groups;
    std::map<std::string, std::vector<std::string>> hosts;

    [[nodiscard]] WantedNames names() const;
    // Whether `names` would give the same.
    [[nodiscard]] bool hold(const HostNames& names) const;
  };
  [[nodiscard]] const Answers& answers() const { return answers_; }

 private:
  friend HostNames;
  [[nodiscard]] std::uint32_t user(const std::string& name);
  [[nodiscard]] std::uint32_t group(const std::string& name);
  [[nodiscard]] std::vector<std::string> addresses(const std::string& host);

  const HostNames& names_;
  WantedNames wanted_;
  Answers answers_;
};

}  // namespace vpfs::control
