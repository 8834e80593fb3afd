#pragma once

#include <string>
#include <vector>

#include "test/support/process.h"

namespace vpfs::test {

using Command = std::vector<std::string>;

// Runs it to its end; `output` gets what it wrote.
Process::Exit run(const Command& command, std::string* output = nullptr);

// Two hosts as network namespaces with a wire between them: one for servers at 10.77.0.1 and one
// for clients at 10.77.0.2. Their ports are theirs alone.
class TwoHosts {
 public:
  TwoHosts();
  ~TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  // Why it could not be made; empty: it was.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // The command as one of that host.
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
