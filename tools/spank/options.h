#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/wishes/wishes.h"

namespace vpfs::spank {

// The options of the commands that submit jobs, without Slurm.
class Options {
 public:
  // `bounds`: the words behind the plugin in plugstack.conf. If one is mistyped, all options are
  // offered, and each is refused with what is wrong.
  explicit Options(const std::vector<std::string_view>& bounds);

  // What is wrong with the bounds.
  [[nodiscard]] const std::optional<std::string>& mistake() const { return mistake_; }
  // Whether the commands have an option for it. What has no bound has no option.
  [[nodiscard]] bool offers(wishes::Wish wish) const;
  // "weight of the job's I/O (a whole number from 1 to 8)", for --help.
  [[nodiscard]] std::string usage(wishes::Wish wish) const;

  // A later value of an option replaces an earlier one. A refused one changes nothing; the error
  // names the option, and says what was expected.
  [[nodiscard]] Result<void> take(wishes::Wish wish, std::string_view value);
  // The value that was taken, as it was typed.
  [[nodiscard]] const std::optional<std::string>& taken(wishes::Wish wish) const;

 private:
  wishes::Bounds bounds_;
  std::optional<std::string> mistake_;
  std::array<std::optional<std::string>, wishes::kWishes.size()> taken_;
};

// "vpfs-weight".
[[nodiscard]] std::string option_name(wishes::Wish wish);
// "VPFS_WEIGHT"; Slurm's Prolog has it as SPANK_VPFS_WEIGHT.
[[nodiscard]] std::string variable_name(wishes::Wish wish);
// The variable by which Slurm hands an option of the job's submission to commands within the job.
[[nodiscard]] std::string inherited_name(wishes::Wish wish);

}  // namespace vpfs::spank
