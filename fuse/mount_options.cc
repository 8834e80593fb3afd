#include "fuse/mount_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/log/log.h"
#include "base/log/log_config.h"
#include "base/nearest_word.h"
#include "base/result.h"
#include "base/units.h"
#include "net/polling/busy_poll.h"

namespace vpfs::fuse {
namespace {

constexpr std::string_view kPosix = "posix:";

Result<void> read_text(std::string_view value, std::string& into) {
  if (value.empty()) return fail("it needs a value");
  into = value;
  return {};
}

Result<void> read_log(std::string_view value, std::string& into) {
  VPFS_TRY(check_log_target(value, "vpfs-mount"));
  into = value;
  return {};
}

Result<void> read_level(std::string_view value, std::string& into) {
  into = value;
  return check_log_level(into);
}

Result<void> read_duration(std::string_view value, Duration& into) {
  // Seconds without a unit, as other file systems have them.
  const bool plain = !value.empty() && value.find_first_not_of("0123456789.") == value.npos;
  const auto read = parse_duration(plain ? fmt::format("{} s", value) : std::string(value));
  if (!read || *read < Duration::zero()) return fail(fmt::format("'{}' is not a time", value));
  into = *read;
  return {};
}

Result<void> read_busy_poll(std::string_view value, std::optional<Duration>& into) {
  into.reset();
  if (value == "auto") return {};
  Duration longest = {};
  VPFS_TRY(read_duration(value, longest));
  if (longest > net::BusyPoll::kMost) return fail(fmt::format("'{}' is more than 1 ms", value));
  into = longest;
  return {};
}

Result<void> read_number(std::string_view value, std::uint64_t least, std::uint64_t most,
                         std::uint64_t& into) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  if (error != std::errc() || end != value.data() + value.size() || into < least || into > most) {
    return fail(fmt::format("'{}' is not a number from {} to {}", value, least, most));
  }
  return {};
}

Result<void> read_locks(std::string_view value, bool& local) {
  if (value != "local" && value != "none") {
    return fail(fmt::format("'{}' is neither 'none' nor 'local'", value));
  }
  local = value == "local";
  return {};
}

Result<void> read_layout(std::string_view value, Layout& into) {
  Result<Layout> layout = parse_layout(value);
  VPFS_TRY(layout);
  into = std::move(*layout);
  return {};
}

Result<void> read_name(std::string_view value, std::string& into) {
  constexpr std::size_t kLongest = 128;
  const bool printable =
      std::ranges::all_of(value, [](char each) { return each > ' ' && each <= '~'; });
  if (value.empty() || value.size() > kLongest || !printable) {
    return fail("it needs 1 to 128 printable characters without a space");
  }
  into = value;
  return {};
}

Result<void> read_job(std::string_view value, ProcessJobs::Options& into) {
  static const std::array<std::string, 3> kSources = {"auto", "cgroup", "environment"};
  if (value.empty()) return fail("it needs 'auto', 'cgroup', 'environment' or a job id");
  into.always.reset();
  into.source = JobSource::automatic;
  if (value == "cgroup") {
    into.source = JobSource::cgroup;
  } else if (value == "environment") {
    into.source = JobSource::environment;
  } else if (value != "auto") {
    // Mistyped, it would be one job to which everything belongs.
    if (const auto meant = nearest_word(value, kSources)) {
      return fail(fmt::format("'{}' is too near to '{}' for a job id", value, *meant));
    }
    VPFS_TRY(read_name(value, into.always.emplace()));
  }
  return {};
}

Result<void> read_variables(std::string_view value, ProcessJobs::Options& into) {
  into.variables.clear();
  while (!value.empty()) {
    const std::string_view name = value.substr(0, value.find(':'));
    if (name.empty()) return fail("it needs names of variables, with ':' between them");
    into.variables.emplace_back(name);
    value.remove_prefix(std::min(name.size() + 1, value.size()));
  }
  if (into.variables.empty()) return fail("it needs names of variables, with ':' between them");
  return {};
}

enum class Source : std::uint8_t { any, directory, orangefs };

// One word that an option may be, and what it does.
struct Word {
  std::string_view name;
  bool takes_value;
  Source source;  // what it is for
  Result<void> (*apply)(MountOptions&, std::string_view value);
};

template <auto Change>
Result<void> just(MountOptions& options, std::string_view /*value*/) {
  Change(options);
  return {};
}

constexpr std::array kWords = {
    Word{"config", true, Source::directory,
         [](MountOptions& to, std::string_view value) { return read_text(value, to.config); }},
    Word{"control", true, Source::directory,
         [](MountOptions& to, std::string_view value) { return read_text(value, to.control); }},
    Word{"log", true, Source::any,
         [](MountOptions& to, std::string_view value) { return read_log(value, to.log); }},
    Word{"log_level", true, Source::any,
         [](MountOptions& to, std::string_view value) { return read_level(value, to.log_level); }},
    Word{"jobid", true, Source::any,
         [](MountOptions& to, std::string_view value) { return read_job(value, to.jobs); }},
    Word{"job_variables", true, Source::any,
         [](MountOptions& to, std::string_view value) { return read_variables(value, to.jobs); }},
    Word{"entry_timeout", true, Source::any,
         [](MountOptions& to, std::string_view value) {
           return read_duration(value, to.entry_timeout);
         }},
    Word{"attr_timeout", true, Source::any,
         [](MountOptions& to, std::string_view value) {
           return read_duration(value, to.attribute_timeout);
         }},
    Word{"threads", true, Source::directory,
         [](MountOptions& to, std::string_view value) {
           return read_number(value, 2, 4096, to.threads);
         }},
    Word{"workers", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) {
           return read_number(value, 1, 64, to.workers);
         }},
    Word{"connections", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) {
           return read_number(value, 1, 64, to.connections);
         }},
    Word{"busy_poll", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) {
           return read_busy_poll(value, to.busy_poll);
         }},
    Word{"retry_for", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) {
           return read_duration(value, to.retry_for);
         }},
    Word{
        "locks", true, Source::orangefs,
        [](MountOptions& to, std::string_view value) { return read_locks(value, to.local_locks); }},
    Word{"layout", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) { return read_layout(value, to.layout); }},
    Word{"vpfs", true, Source::orangefs,
         [](MountOptions& to, std::string_view value) { return read_name(value, to.virtual_pfs); }},
    Word{"allow_other", false, Source::any,
         just<[](MountOptions& to) { to.point.allow_other = true; }>},
    Word{"allow_root", false, Source::any,
         just<[](MountOptions& to) { to.point.allow_root = true; }>},
    Word{"auto_unmount", false, Source::any,
         just<[](MountOptions& to) { to.point.auto_unmount = true; }>},
    Word{"noauto_unmount", false, Source::any,
         just<[](MountOptions& to) { to.point.auto_unmount = false; }>},
    Word{"stacked", false, Source::any, just<[](MountOptions& to) { to.point.stacked = true; }>},
    Word{"intr", false, Source::any,
         just<[](MountOptions& to) { to.interrupts = Interrupts::all; }>},
    Word{"nointr", false, Source::any,
         just<[](MountOptions& to) { to.interrupts = Interrupts::of_dying; }>},
    Word{"acl", false, Source::directory, just<[](MountOptions& to) { to.acl = true; }>},
    Word{"noacl", false, Source::directory, just<[](MountOptions& to) { to.acl = false; }>},
    Word{"ro", false, Source::any, just<[](MountOptions& to) { to.point.read_only = true; }>},
    Word{"rw", false, Source::any, just<[](MountOptions& to) { to.point.read_only = false; }>},
};

// For the kernel, as they are.
constexpr std::array<std::string_view, 11> kForTheKernel = {"suid", "nosuid", "dev",    "nodev",
                                                            "exec", "noexec", "atime",  "noatime",
                                                            "sync", "async",  "dirsync"};
// For mount and its kin.
constexpr std::array<std::string_view, 14> kForOthers = {
    "defaults", "auto",    "noauto", "user",     "users",    "nouser",   "owner",
    "group",    "_netdev", "nofail", "relatime", "_rnetdev", "diratime", "nodiratime"};

bool has(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::string unknown(std::string_view name) {
  std::vector<std::string> known;
  for (const Word& each : kWords) known.emplace_back(each.name);
  for (const std::string_view each : kForTheKernel) known.emplace_back(each);
  const auto nearest = nearest_word(name, known);
  return fmt::format("-o {}: unknown{}", name,
                     nearest ? fmt::format("; did you mean '{}'?", *nearest) : "");
}

Result<void> apply(MountOptions& options, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (has(kForOthers, name) || name.starts_with("x-") || name == "comment") return {};
  if (has(kForTheKernel, text)) {
    options.point.others.emplace_back(text);
    return {};
  }
  const auto* const word = std::ranges::find(kWords, name, &Word::name);
  if (word == kWords.end()) return fail(unknown(name));
  if (word->source != Source::any &&
      (word->source == Source::orangefs) != options.address.has_value()) {
    return fail(fmt::format("-o {}: it is for {} only", name,
                            options.address ? "posix:DIRECTORY" : "tcp://HOST:PORT/NAME"));
  }
  const bool has_value = equals != std::string_view::npos;
  if (has_value && !word->takes_value) return fail(fmt::format("-o {}: it takes no value", name));
  if (!has_value && word->takes_value) return fail(fmt::format("-o {}: it needs a value", name));
  Result<void> applied = word->apply(options, has_value ? text.substr(equals + 1) : "");
  if (!applied) return fail(fmt::format("-o {}: {}", name, applied.error().message));
  return {};
}

}  // namespace

Result<MountOptions> parse_mount_options(std::string_view source, std::string_view directory,
                                         const std::vector<std::string>& lists) {
  MountOptions options;
  if (source.starts_with(kPosix) && source.size() > kPosix.size()) {
    options.source = source.substr(kPosix.size());
  } else if (source.find("://") != source.npos) {
    Result<client::MountAddress> address = client::parse_mount_address(source);
    VPFS_TRY(address);
    options.address = std::move(*address);
  } else {
    return fail(fmt::format(
        "'{}' is not a source: it must be posix:DIRECTORY or tcp://HOST:PORT/NAME", source));
  }
  options.lists = lists;
  options.point.source = source;
  options.point.directory = directory;
  for (const std::string& list : lists) {
    // As of a service whose OPTIONS are missing.
    if (list.empty()) return fail("-o: it needs options, such as allow_other");
    for (std::string_view rest = list; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      if (word.empty()) continue;
      VPFS_TRY(apply(options, word));
    }
  }
  if (options.point.allow_other && options.point.allow_root) {
    return fail("-o allow_root: it excludes allow_other");
  }
  return options;
}

}  // namespace vpfs::fuse
