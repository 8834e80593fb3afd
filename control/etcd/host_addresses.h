#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::control {

// The addresses of a host, for calls that must not wait for a name service. A look-up has a thread
// of its own, which may hang and outlive this. What the last one has found is used until there is
// something newer. Belongs to one thread.
class HostAddresses {
 public:
  using Addresses = Result<std::vector<std::string>>;
  // Blocks. Called on another thread, one call at a time.
  using LookUp = std::function<Addresses(const std::string& host)>;

  // An address of numbers is its own.
  explicit HostAddresses(std::string host, LookUp look_up = look_up_host);

  // They take turns, so that one that does not answer makes way for the next. Begins a look-up, and
  // waits for it for `patience` at most if none was known before.
  [[nodiscard]] Result<std::string> next(Duration patience);
  [[nodiscard]] std::size_t known() const { return known_.size(); }

  // Asks the name service of the system.
  [[nodiscard]] static Addresses look_up_host(const std::string& host);

 private:
  struct Shared;
  [[nodiscard]] Result<void> begin();

  const std::string host_;
  const std::shared_ptr<Shared> shared_;  // with the thread
  std::vector<std::string> known_;
  std::size_t turn_ = 0;
};

}  // namespace vpfs::control
