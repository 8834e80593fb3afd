#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace vpfs::proxy {

// Who has used each open file of each node: what the node's kernel writes back later carries no
// user of its own. A file that several users have used tells nothing. Bounded: files that have not
// been used for long are forgotten. May be called from any thread.
class OpenFileUsers {
 public:
  // The file as the protocol names it, with its node.
  [[nodiscard]] static std::uint64_t key(std::uint32_t node, std::string_view open_file);

  void saw(std::uint64_t key, std::uint32_t uid);
  [[nodiscard]] std::optional<std::uint32_t> only_user(std::uint64_t key);

 private:
  static constexpr std::size_t kParts = 16;
  // Of each part; when it is full the older generation is dropped.
  static constexpr std::size_t kMostFiles = 8192;

  struct User {
    std::uint32_t uid = 0;
    bool several = false;
  };
  using Files = std::unordered_map<std::uint64_t, User>;
  struct Part {
    std::mutex mutex;
    Files recent;
    Files older;
  };

  [[nodiscard]] Part& part_of(std::uint64_t key) { return parts_[key % kParts]; }
  [[nodiscard]] static User* find(Part& part, std::uint64_t key);

  std::array<Part, kParts> parts_;
};

}  // namespace vpfs::proxy
