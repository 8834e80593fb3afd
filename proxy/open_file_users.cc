#include "proxy/open_file_users.h"

#include <array>
#include <bit>
#include <functional>

namespace vpfs::proxy {

std::uint64_t OpenFileUsers::key(const stage::Address& client, std::uint32_t node,
                                 std::string_view open_file) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15U;
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(client.bytes());
  const std::uint64_t place = ((halves[0] * kFactor) ^ halves[1]) * kFactor + node;
  return std::hash<std::string_view>{}(open_file) ^ (place * kFactor);
}

void OpenFileUsers::saw(std::uint64_t key, std::uint32_t uid) {
  users_.change(key, [uid](User& user) {
    if (user.uid.value_or(uid) != uid) user.several = true;
    user.uid = uid;
  });
}

// Each file is two numbers: its key, and its user with a bit beside for several.
SavedState::Numbers OpenFileUsers::save() {
  constexpr std::uint64_t kSeveral = std::uint64_t{1} << 32;
  SavedState::Numbers all;
  users_.for_each([&](std::uint64_t key, const User& user) {
    if (!user.uid) return;
    all.push_back(key);
    all.push_back(*user.uid | (user.several ? kSeveral : 0));
  });
  return all;
}

void OpenFileUsers::restore(const SavedState::Numbers& from) {
  for (std::size_t i = 0; i + 1 < from.size(); i += 2) {
    users_.change(from[i], [&](User& user) {
      user = {.uid = static_cast<std::uint32_t>(from[i + 1]), .several = from[i + 1] >> 32 != 0};
    });
  }
}

std::optional<std::uint32_t> OpenFileUsers::only_user(std::uint64_t key) {
  const std::optional<User> user = users_.find(key);
  return !user || user->several ? std::nullopt : user->uid;
}

}  // namespace vpfs::proxy
