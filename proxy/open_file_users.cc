#include "proxy/open_file_users.h"

#include <functional>
#include <utility>

namespace vpfs::proxy {

std::uint64_t OpenFileUsers::key(std::uint32_t node, std::string_view open_file) {
  return std::hash<std::string_view>{}(open_file) ^ (node * 0x9e3779b97f4a7c15U);
}

// One that is used moves to the recent ones.
OpenFileUsers::User* OpenFileUsers::find(Part& part, std::uint64_t key) {
  if (const auto found = part.recent.find(key); found != part.recent.end()) return &found->second;
  const auto found = part.older.find(key);
  if (found == part.older.end()) return nullptr;
  const User user = found->second;
  part.older.erase(found);
  return &part.recent.insert_or_assign(key, user).first->second;
}

void OpenFileUsers::saw(std::uint64_t key, std::uint32_t uid) {
  Part& part = part_of(key);
  const std::lock_guard lock(part.mutex);
  if (User* const user = find(part, key)) {
    if (user->uid != uid) user->several = true;
    return;
  }
  if (part.recent.size() >= kMostFiles) {
    part.older = std::move(part.recent);
    part.recent = {};
  }
  part.recent.emplace(key, User{.uid = uid});
}

std::optional<std::uint32_t> OpenFileUsers::only_user(std::uint64_t key) {
  Part& part = part_of(key);
  const std::lock_guard lock(part.mutex);
  const User* const user = find(part, key);
  if (user == nullptr || user->several) return std::nullopt;
  return user->uid;
}

}  // namespace vpfs::proxy
