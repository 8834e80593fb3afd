#include "tools/load/settings_summary.h"

#include <iterator>

#include <fmt/format.h>

namespace vpfs::load {
namespace {

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string mix(std::uint64_t read_percent) {
  if (read_percent == 0) return "writes";
  if (read_percent == 100) return "reads";
  return fmt::format("{} % reads, {} % writes", read_percent, 100 - read_percent);
}

std::string amount(const ApplicationSettings& application) {
  if (application.amount.count == 0) return "";
  return fmt::format(", {} in all", to_string(application.amount));
}

std::string places(const ApplicationSettings& application) {
  if (application.servers.empty()) return "";
  return fmt::format(" on {}", fmt::join(application.servers, ", "));
}

std::string identity(const ApplicationSettings& application) {
  std::string text = application.jobid.empty() ? "no job id" : "job id " + application.jobid;
  text += fmt::format(", uid {}", application.uid);
  return application.node.empty() ? text : text + ", node " + application.node;
}

std::string when(const ApplicationSettings& application) {
  std::string text;
  if (application.start > Duration::zero()) text += ", from " + to_string(application.start);
  if (application.stop) text += ", until " + to_string(*application.stop);
  if (application.think > Duration::zero()) {
    text += fmt::format(", {} after each answer", to_string(application.think));
  }
  if (application.burst) {
    text += fmt::format(", for {} of every {}", to_string(application.burst->length),
                        to_string(application.burst->interval));
  }
  return text;
}

std::string application_line(const ApplicationSettings& application) {
  return fmt::format(
      "{}: {}, each with {} and {} in flight: {} {} of {} in a file of {}{}{}{} ({})",
      application.name,
      application.processes == 1 ? "1 process" : fmt::format("{} processes", application.processes),
      counted(application.connections, "connection"), counted(application.outstanding, "request"),
      application.pattern == Pattern::random ? "random" : "sequential",
      mix(application.read_percent), to_string(application.size), to_string(application.file_size),
      places(application), amount(application), when(application), identity(application));
}

}  // namespace

std::string to_summary(const LoadSettings& settings) {
  std::string text = fmt::format("  runs on {}", settings.file_system);
  const auto out = std::back_inserter(text);
  const bool has_names = std::holds_alternative<client::MountAddress>(settings.mount);
  if (has_names) {
    fmt::format_to(out, ", files in {} of uid {} and gid {}", settings.directory, settings.uid,
                   settings.gid);
  }
  fmt::format_to(out, "; {} the files at the end\n", settings.keep_files ? "keeps" : "removes");
  fmt::format_to(out, "  measures {}{} after a warm-up of {}, {}, with {}\n",
                 settings.until_done ? "until all have ended, at most " : "",
                 to_string(settings.duration), to_string(settings.warm_up),
                 settings.verify ? "verifying every block" : "without looking at the data",
                 counted(settings.threads, "thread"));
  for (const ApplicationSettings& each : settings.applications) {
    fmt::format_to(out, "    {}\n", application_line(each));
  }
  return text;
}

}  // namespace vpfs::load
