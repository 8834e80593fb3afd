#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "net/descriptor.h"

namespace vpfs::net {

// Open descriptors that a program was given by the one before it, by name: listeners, and files
// whose locks it holds. Whoever opens something takes it from here if it is there.
class Inherited {
 public:
  void add(std::string name, Descriptor descriptor) {
    descriptors_.insert_or_assign(std::move(name), std::move(descriptor));
  }
  // None: there is no such name.
  [[nodiscard]] Descriptor take(std::string_view name) {
    const auto found = descriptors_.find(name);
    if (found == descriptors_.end()) return {};
    Descriptor taken = std::move(found->second);
    descriptors_.erase(found);
    return taken;
  }
  // The same where there may be nothing at all.
  [[nodiscard]] static Descriptor take_from(Inherited* from, std::string_view name) {
    return from == nullptr ? Descriptor() : from->take(name);
  }
  void clear() { descriptors_.clear(); }

 private:
  std::map<std::string, Descriptor, std::less<>> descriptors_;
};

}  // namespace vpfs::net
