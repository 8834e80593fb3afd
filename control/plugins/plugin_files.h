#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/plugins/file_checks.h"
#include "schedulers/plugin.h"
#include "schedulers/policies/registry.h"
#include "stage/config/policy_plugins.h"

namespace vpfs::control {

// Plugins of this process: shared libraries with policies (docs/schedulers.md). What has been
// loaded stays until the process ends, also when no configuration names it and when this object
// ends: schedulers may still run its code. So a new file of the same path needs a new process.
//
// Not for several threads at once.
class PluginFiles final : public stage::PolicyLoader {
 public:
  // Runs the static constructors of the library and its entry function. An error says what is wrong
  // with the file; nothing of it is kept then.
  [[nodiscard]] Result<Loaded> load(const std::string& path) override;

 private:
  struct Library {
    TrustedFile file;
    PolicyKinds policies;
    std::string maker;
  };

  std::vector<Library> libraries_;
};

// What is wrong with a description, apart from the names of its policies: another interface or
// another build, nothing in it, or a policy that cannot be made. It is of the plugin `path`.
[[nodiscard]] Result<void> check_description(const std::string& path,
                                             const PluginDescription* description);

}  // namespace vpfs::control
