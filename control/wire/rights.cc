#include "control/wire/rights.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <unistd.h>

#include "base/result.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

std::expected<Members, Error> resolve(const std::vector<Principal>& principals,
                                      const Accounts& accounts, const std::string& place) {
  using Kind = Principal::Kind;
  Members members;
  for (const Principal& each : principals) {
    switch (each.kind) {
      case Kind::uid:
        members.uids.push_back(each.id);
        break;
      case Kind::gid:
        members.gids.push_back(each.id);
        break;
      case Kind::certificate:
        members.certificates.push_back(each.name);
        break;
      case Kind::user:
      case Kind::group: {
        const bool user = each.kind == Kind::user;
        const auto id = user ? accounts.user(each.name) : accounts.group(each.name);
        if (!id) {
          return std::unexpected(
              make_error(Error::INVALID, place,
                         fmt::format("this host has no {} \"{}\"{}", user ? "user" : "group",
                                     each.name, user ? "; a group is written @NAME" : "")));
        }
        (user ? members.uids : members.gids).push_back(*id);
        break;
      }
    }
  }
  return members;
}

// Whether the kernel lets this process give a file of its own to the group.
bool may_give_to(gid_t group) {
  if (::geteuid() == 0 || group == ::getegid()) return true;
  std::vector<gid_t> own(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(own.size()), own.data());
  own.resize(static_cast<std::size_t>(std::max(count, 0)));
  return std::ranges::find(own, group) != own.end();
}

std::expected<std::uint32_t, Error> socket_group(const std::string& group, const Accounts& accounts,
                                                 const std::string& section) {
  if (group.empty()) return ::getegid();
  const auto problem = [&](const std::string& what) {
    return std::unexpected(make_error(Error::INVALID, section + ".group", what));
  };
  std::uint32_t gid = 0;
  const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), gid);
  if (error != std::errc{} || end != group.data() + group.size()) {
    const auto found = accounts.group(group);
    if (!found) return problem(fmt::format("this host has no group \"{}\"", group));
    gid = *found;
  }
  if (may_give_to(gid)) return gid;
  return problem(fmt::format(
      "uid {} is not in the group \"{}\", so it cannot give it the socket: make it a member, as "
      "with `usermod -aG {} vpfs`, and start again",
      ::geteuid(), group, group));
}

bool any_of(const auto& wanted, const auto& these) {
  return std::ranges::any_of(
      these, [&](const auto& each) { return std::ranges::find(wanted, each) != wanted.end(); });
}

}  // namespace

std::string name_of(const Identity& who, const std::optional<std::string>& user) {
  if (!who.uid) return who.certificate.empty() ? "nobody" : "CN=" + who.certificate.front();
  return user ? fmt::format("{} (uid {})", *user, *who.uid) : fmt::format("uid {}", *who.uid);
}

bool Members::have(const Identity& who) const {
  if (who.uid && std::ranges::find(uids, *who.uid) != uids.end()) return true;
  return any_of(gids, who.gids) || any_of(certificates, who.certificate);
}

std::expected<Access, Error> resolve_access(const PortConfig& config, const Accounts& accounts,
                                            const std::string& section) {
  auto readers = resolve(config.readers, accounts, section + ".readers");
  VPFS_TRY(readers);
  auto writers = resolve(config.writers, accounts, section + ".writers");
  VPFS_TRY(writers);
  const auto gid = socket_group(config.group, accounts, section);
  VPFS_TRY(gid);
  if (config.readers.empty()) readers->gids.push_back(*gid);
  writers->uids.push_back(0);
  writers->uids.push_back(::geteuid());
  return Access{.readers = std::move(*readers), .writers = std::move(*writers), .socket_gid = *gid};
}

Rights rights_of(const Identity& who, const Access& access) {
  if (access.writers.have(who)) return Rights::change;
  return access.readers.have(who) ? Rights::read : Rights::own;
}

bool may_connect(const Identity& who, const Access& access) {
  return who.uid || rights_of(who, access) != Rights::own;
}

bool is_any_user(const Identity& who, const Access& access) {
  return who.uid && rights_of(who, access) == Rights::own;
}

Error refusal(const Caller& caller, Rights needed) {
  const bool change = needed == Rights::change;
  const char* may = caller.rights == Rights::read ? "may see everything here, but change nothing"
                                                  : "may see only own jobs here";
  const std::string place = change ? "control.writers" : "control.readers";
  return make_error(
      Error::NOT_PERMITTED, place,
      fmt::format("{} from {} {}; {} of the configuration names the users who may {}", caller.name,
                  caller.from, may, place, change ? "change something" : "see everything"));
}

}  // namespace vpfs::control
