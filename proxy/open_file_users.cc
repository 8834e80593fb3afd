#include "proxy/open_file_users.h"

#include <functional>

namespace vpfs::proxy {

std::uint64_t OpenFileUsers::key(std::uint32_t node, std::string_view open_file) {
  return std::hash<std::string_view>{}(open_file) ^ (node * 0x9e3779b97f4a7c15U);
}

void OpenFileUsers::saw(std::uint64_t key, std::uint32_t uid) {
  users_.change(key, [uid](User& user) {
    if (user.uid.value_or(uid) != uid) user.several = true;
    user.uid = uid;
  });
}

std::optional<std::uint32_t> OpenFileUsers::only_user(std::uint64_t key) {
  const std::optional<User> user = users_.find(key);
  return !user || user->several ? std::nullopt : user->uid;
}

}  // namespace vpfs::proxy
