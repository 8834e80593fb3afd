#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"
#include "stage/config/config.h"

namespace vpfs::stage {

// Reads the mapping `virtual_pfs` below `reader`. It comes after read_scheduler(), since the words
// of a share depend on the policy. Promises that cannot be kept together are reported.
void read_shares(ConfigReader& reader, Config& config);

// The words that only single policies know, of the policy in use; for a site, of all policies.
[[nodiscard]] std::vector<ShareWord> own_words(const Config& config);
// The words of shares: of an entry of `virtual_pfs`, and of a rule that declares its virtual PFS.
[[nodiscard]] std::vector<std::string_view> share_words(const Config& config);
// Reads those of a mapping that may have other keys too.
[[nodiscard]] VirtualPfsConfig read_share(const std::string& name, ConfigReader& entry,
                                          const Config& config);
// Reads the limits of a shadow rule, which no policy sees. Reports other words of shares, and if
// there is no limit.
[[nodiscard]] VirtualPfsConfig read_shadow_share(const std::string& name, ConfigReader& entry,
                                                 const Config& config);

// Reports promises of `made` that cannot be kept beside those of config.virtual_pfs.
void check_promise(ConfigReader& entry, const VirtualPfsConfig& made, const Config& config);

// "2TiB/8h": bytes, and the time for them. Both need their unit.
struct Finish {
  Bytes bytes;
  Duration within = Duration::zero();
};
[[nodiscard]] std::optional<Finish> parse_finish(std::string_view text);

}  // namespace vpfs::stage
