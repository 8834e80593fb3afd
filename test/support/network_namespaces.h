#pragma once

#include <string>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

using Command = std::vector<std::string>;

// Runs `command` to its end. `output`, if given, receives what it wrote.
Process::Exit run(const Command& command, std::string* output = nullptr);

// Two connected network namespaces that stand for hosts: servers at 10.77.0.1, clients
// at 10.77.0.2. No other program uses their ports.
class TwoHosts {
 public:
  TwoHosts();
  ~TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  // Why they could not be made; empty if they could.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Makes the command that runs `command` on that host.
  [[nodiscard]] Command at_servers(const Command& command) const { return at(servers_, command); }
  [[nodiscard]] Command at_clients(const Command& command) const { return at(clients_, command); }

 private:
  [[nodiscard]] static Command at(const std::string& host, const Command& command);
  [[nodiscard]] bool make();

  const std::string servers_;
  const std::string clients_;
  std::string problem_;
};

}  // namespace vpfs::test
