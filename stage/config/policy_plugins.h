#pragma once

#include <string>

#include "base/config_reader.h"
#include "base/result.h"
#include "schedulers/policies/registry.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// Loads policies that vpfs does not have from files. The stage's owner implements it, because that
// is I/O and runs their code.
class PolicyLoader {
 public:
  struct Loaded {
    PolicyKinds policies;  // valid as long as the process
    std::string maker;     // where it is from, as the file says
    std::string warning;   // "": there is none
  };

  virtual ~PolicyLoader() = default;
  // The same file gives the same policies each time.
  [[nodiscard]] virtual Result<Loaded> load(const std::string& path) = 0;
};

// Reads `plugins` of the mapping `scheduler` and adds their policies to config.policies. What does
// not load is the only error of the text, since nothing that follows can be judged without it.
void read_plugins(ConfigReader& scheduler, Config& config);
// Runs what the policies themselves read and check of the mapping `scheduler`, and makes the chosen
// one once if it is of a plugin. What their code throws is an error, as above.
void read_policies(ConfigReader& scheduler, Config& config);

}  // namespace vpfs::stage
