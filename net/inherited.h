#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/descriptor.h"

namespace vpfs::net {

// Open descriptors that a program was given by the one before it, by name: listeners, and files
// whose locks it holds. Whoever opens something takes it from here if it is there.
class Inherited {
 public:
  void add(std::string name, Descriptor descriptor) {
    descriptors_.emplace(std::move(name), std::move(descriptor));
  }
  // None: there is no such name. One of them, if several have it.
  [[nodiscard]] Descriptor take(std::string_view name) {
    const auto found = descriptors_.find(name);
    if (found == descriptors_.end()) return {};
    Descriptor taken = std::move(found->second);
    descriptors_.erase(found);
    return taken;
  }
  // All whose names begin so, with their names. Several may have one name.
  [[nodiscard]] std::vector<std::pair<std::string, Descriptor>> take_all(std::string_view prefix) {
    std::vector<std::pair<std::string, Descriptor>> all;
    for (auto each = descriptors_.lower_bound(prefix);
         each != descriptors_.end() && each->first.starts_with(prefix);
         each = descriptors_.erase(each)) {
      all.emplace_back(each->first, std::move(each->second));
    }
    return all;
  }
  // take() where there may be nothing at all.
  [[nodiscard]] static Descriptor take_from(Inherited* from, std::string_view name) {
    return from == nullptr ? Descriptor() : from->take(name);
  }
  void clear() { descriptors_.clear(); }

 private:
  std::multimap<std::string, Descriptor, std::less<>> descriptors_;
};

}  // namespace vpfs::net
