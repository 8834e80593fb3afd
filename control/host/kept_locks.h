#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/store/file_calls.h"
#include "net/inherited.h"

namespace vpfs::control {

// The calls of a program's journals. It knows the locks that they hold, so that the next process
// can have them, and takes those of the process before.
class KeptLocks final : public FileCalls {
 public:
  // `inherited` may be null, and is used until forget_inherited().
  explicit KeptLocks(net::Inherited* inherited) : inherited_(inherited) {}
  void forget_inherited() { inherited_ = nullptr; }

  [[nodiscard]] int open(const char* path, int flags, mode_t mode) override {
    const bool is_lock = std::string_view(path).ends_with(".lock");
    net::Descriptor given =
        is_lock ? net::Inherited::take_from(inherited_, name_of(path)) : net::Descriptor();
    const bool is_it = given && has_name(given.get(), path);
    const int file = is_it ? given.release() : FileCalls::open(path, flags, mode);
    if (is_lock && file >= 0) locks_[file] = path;
    return file;
  }
  void close(int file) override {
    locks_.erase(file);
    FileCalls::close(file);
  }

  [[nodiscard]] std::vector<std::pair<std::string, int>> descriptors() const {
    std::vector<std::pair<std::string, int>> all;
    for (const auto& [file, path] : locks_) all.emplace_back(name_of(path), file);
    return all;
  }

 private:
  [[nodiscard]] static std::string name_of(std::string_view path) {
    return "lock " + std::string(path);
  }

  net::Inherited* inherited_;
  std::map<int, std::string> locks_;
};

}  // namespace vpfs::control
