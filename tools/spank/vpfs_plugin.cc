// The options --vpfs-weight, --vpfs-rate and --vpfs-deadline of srun, sbatch and salloc, as a
// plugin of Slurm (SPANK).
//
// Slurm calls take_option() for each option that is given, and the command ends if that refuses the
// value. What was accepted goes to Slurm's Prolog as SPANK_VPFS_WEIGHT and so on
// (conf/slurm/prolog), where the bounds are checked again. In slurmd and in the steps of a job the
// plugin does nothing. Slurm loads it into programs that are not ours, so no exception leaves it,
// and what Slurm calls returns 0: nothing here fails a job.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/spank/options.h"

extern "C" {
#include <slurm/spank.h>

#define VPFS_SEEN_BY_SLURM __attribute__((visibility("default")))
VPFS_SEEN_BY_SLURM extern const char plugin_name[];
VPFS_SEEN_BY_SLURM extern const char plugin_type[];
VPFS_SEEN_BY_SLURM extern const unsigned int plugin_version;
VPFS_SEEN_BY_SLURM extern const unsigned int spank_plugin_version;
SPANK_PLUGIN(vpfs, 1)

VPFS_SEEN_BY_SLURM int slurm_spank_init(spank_t spank, int count, char** words);
VPFS_SEEN_BY_SLURM int slurm_spank_init_post_opt(spank_t spank, int count, char** words);
}

namespace {

using vpfs::Result;
using vpfs::spank::option_name;
using vpfs::spank::Options;
using vpfs::wishes::kWishes;
using vpfs::wishes::Wish;

// Slurm gives its callbacks no place for what the plugin knows.
std::optional<Options> known;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// Texts of an option, which Slurm may look at as long as the plugin is loaded.
struct Texts {
  std::string name;
  std::string usage;
  spank_option option = {};
};
std::array<Texts, kWishes.size()>
    texts;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

// srun starts a step of a job that runs already. The options of its submission count.
bool is_within_a_job() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a command reads its options in one thread
  return spank_context() == S_CTX_LOCAL && std::getenv("SLURM_JOB_ID") != nullptr;
}

bool is_inherited(Wish wish, std::string_view value) {
  const std::string name = vpfs::spank::inherited_name(wish);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a command reads its options in one thread
  const char* const inherited = std::getenv(name.c_str());
  return inherited != nullptr && value == inherited;
}

int take(Options& options, Wish wish, std::string_view value) {
  if (is_within_a_job()) {
    if (!is_inherited(wish, value)) {
      slurm_error("--%s: counts for a whole job, and this one runs already: ignored",
                  option_name(wish).c_str());
    }
    return 0;
  }
  const Result<void> taken = options.take(wish, value);
  if (taken) return 0;
  slurm_error("%s", taken.error().message.c_str());
  return -1;
}

int take_option(int wish, const char* value, int remote) {
  if (remote != 0 || !known) return 0;
  try {
    return take(*known, static_cast<Wish>(wish), value == nullptr ? "" : value);
  } catch (const std::exception& problem) {
    slurm_error("vpfs: %s", problem.what());
    return 0;
  }
}

const char* argument_of(Wish wish) {
  switch (wish) {
    case Wish::weight:
      return "N";
    case Wish::rate:
      return "RATE";
    case Wish::deadline:
      break;
  }
  return "TIME";
}

void offer(spank_t spank, const Options& options, Wish wish) {
  Texts& text = texts[static_cast<std::size_t>(wish)];
  text.name = option_name(wish);
  text.usage = options.usage(wish);
  text.option = {.name = text.name.data(),
                 .arginfo = const_cast<char*>(argument_of(wish)),
                 .usage = text.usage.data(),
                 .has_arg = 1,
                 .val = static_cast<int>(wish),
                 .cb = take_option};
  if (spank_option_register(spank, &text.option) != ESPANK_SUCCESS) {
    slurm_error("vpfs: Slurm does not take the option --%s", text.name.c_str());
  }
}

void start(spank_t spank, const std::vector<std::string_view>& bounds) {
  const Options& options = known.emplace(bounds);
  if (const std::optional<std::string>& mistake = options.mistake();
      mistake && spank_context() == S_CTX_SLURMD) {
    slurm_error("vpfs: bounds in plugstack.conf: %s", mistake->c_str());
  }
  for (const Wish wish : kWishes) {
    if (options.offers(wish)) offer(spank, options, wish);
  }
}

void hand_over(spank_t spank, const Options& options) {
  if (spank_context() != S_CTX_LOCAL && spank_context() != S_CTX_ALLOCATOR) return;
  for (const Wish wish : kWishes) {
    const std::optional<std::string>& value = options.taken(wish);
    if (!value) continue;
    const std::string name = vpfs::spank::variable_name(wish);
    if (spank_job_control_setenv(spank, name.c_str(), value->c_str(), 1) != ESPANK_SUCCESS) {
      slurm_error("--%s: Slurm does not pass it on: ignored", option_name(wish).c_str());
    }
  }
}

}  // namespace

int slurm_spank_init(spank_t spank, int count, char** words) {
  try {
    start(spank, std::vector<std::string_view>(words, words + count));
  } catch (const std::exception& problem) {
    slurm_error("vpfs: %s", problem.what());
  }
  return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int /*count*/, char** /*words*/) {
  try {
    if (known) hand_over(spank, *known);
  } catch (const std::exception& problem) {
    slurm_error("vpfs: %s", problem.what());
  }
  return 0;
}
