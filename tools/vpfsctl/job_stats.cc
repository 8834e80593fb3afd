#include "tools/vpfsctl/job_stats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace vpfs::ctl {
namespace {

// Rows of an object storage target behind the four that have values, in Lustre's order.
constexpr std::array<std::string_view, 11> kOtherRows = {
    "getattr", "setattr",  "punch",    "sync",     "destroy", "create",
    "statfs",  "get_info", "set_info", "quotactl", "prealloc"};

struct Job {
  std::string id;
  std::int64_t start = 0;
  std::int64_t snapshot = 0;
  control::Statistic read_bytes;
  control::Statistic write_bytes;
  control::Statistic read_usecs;
  control::Statistic write_usecs;
};

void add(const control::Statistic& more, control::Statistic* all) {
  if (more.samples() == 0) return;
  all->set_min(all->samples() == 0 ? more.min() : std::min(all->min(), more.min()));
  all->set_max(std::max(all->max(), more.max()));
  all->set_samples(all->samples() + more.samples());
  all->set_sum(all->sum() + more.sum());
  all->set_sumsq(all->sumsq() + more.sumsq());
}

// Those that have had I/O, in the order of their first virtual PFS.
std::vector<Job> jobs_of(const control::StatsReply& reply) {
  std::vector<Job> jobs;
  std::map<std::string, std::size_t> places;
  for (const control::VirtualPfs& each : reply.virtual_pfs()) {
    if (each.snapshot_at() == 0) continue;
    const std::string& id = each.jobid().empty() ? each.name() : each.jobid();
    const auto [place, is_new] = places.try_emplace(id, jobs.size());
    if (is_new)
      jobs.push_back({.id = id, .start = each.since_at(), .snapshot = each.snapshot_at()});
    Job& job = jobs[place->second];
    job.start = std::min(job.start, each.since_at());
    job.snapshot = std::max(job.snapshot, each.snapshot_at());
    add(each.read_bytes(), &job.read_bytes);
    add(each.write_bytes(), &job.write_bytes);
    add(each.read_usecs(), &job.read_usecs);
    add(each.write_usecs(), &job.write_usecs);
  }
  return jobs;
}

bool is_plain(char letter) {
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || std::string_view(".@-_:/").contains(letter);
}

// Other characters as "\x20". An id with one of them, with a colon, or that begins with "@" is in
// quotes.
std::string job_id_text(std::string_view id) {
  std::string text;
  bool quotes = id.starts_with('@') || id.contains(':');
  for (const char letter : id) {
    if (is_plain(letter)) {
      text += letter;
    } else {
      text += fmt::format("\\x{:02X}", static_cast<unsigned char>(letter));
      quotes = true;
    }
  }
  return quotes ? fmt::format("\"{}\"", text) : text;
}

// The largest integer of 64 bits instead of a larger one.
std::uint64_t as_integer(double value) {
  constexpr double kTooLarge = 18446744073709551616.0;
  if (!(value > 0)) return 0;
  if (value >= kTooLarge) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(value);
}

void add_row(std::string_view name, std::string_view unit, const control::Statistic& of,
             std::string* text) {
  fmt::format_to(std::back_inserter(*text),
                 "  {:<16} {{ samples: {:>11}, unit: {:>5}, min: {:>8}, max: {:>8}, sum: {:>16}, "
                 "sumsq: {:>18} }}\n",
                 fmt::format("{}:", name), of.samples(), unit, of.min(), of.max(), of.sum(),
                 as_integer(of.sumsq()));
}

void add_time(std::string_view name, std::int64_t seconds, std::string* text) {
  fmt::format_to(std::back_inserter(*text), "  {:<16} {}.000000000 secs.nsecs\n", name, seconds);
}

}  // namespace

std::string job_stats_text(const control::StatsReply& reply) {
  std::string text = "job_stats:\n";
  for (const Job& job : jobs_of(reply)) {
    fmt::format_to(std::back_inserter(text), "- {:<16} {}\n", "job_id:", job_id_text(job.id));
    add_time("snapshot_time:", job.snapshot, &text);
    add_time("start_time:", job.start, &text);
    add_time("elapsed_time:", std::max<std::int64_t>(job.snapshot - job.start, 0), &text);
    add_row("read_bytes", "bytes", job.read_bytes, &text);
    add_row("write_bytes", "bytes", job.write_bytes, &text);
    add_row("read", "usecs", job.read_usecs, &text);
    add_row("write", "usecs", job.write_usecs, &text);
    for (const std::string_view name : kOtherRows) add_row(name, "usecs", {}, &text);
  }
  return text;
}

}  // namespace vpfs::ctl
