#include "tools/selftest/loads.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "tools/selftest/proxy.h"

namespace vpfs::selftest {
namespace {

constexpr Bytes kLeastFile = {16 * kMiB};
constexpr Bytes kLargestFile = {64 * kMiB};
constexpr std::uint64_t kRequestsOfFile = 64;
constexpr std::uint64_t kThreads = 2;

char letter(std::size_t application) {
  return static_cast<char>('a' + application);
}

// As a part of a file's name.
std::string plain(const std::string& text) {
  std::string result;
  for (const char each : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '-';
    result += is_plain ? each : '_';
  }
  return result;
}

// With a share the files are written within about a second, so that there is time to measure.
Bytes file_size(const Settings& settings, const Phase& phase) {
  std::uint64_t size =
      std::clamp(kRequestsOfFile * phase.size.count, kLeastFile.count, kLargestFile.count);
  if (settings.share) size = std::min(size, settings.share->count);
  return {std::max(size / phase.size.count, std::uint64_t{4}) * phase.size.count};
}

}  // namespace

std::string job_of(std::size_t application) {
  return fmt::format("{}{}", kMark, letter(application));
}

load::LoadSettings load_of(const Settings& settings, const Phase& phase, const std::string& proxy) {
  load::LoadSettings load;
  const bool direct = phase.path == Path::direct;
  load.file_system = direct ? settings.direct : settings.on;
  load.mount = direct ? settings.past_proxy : settings.through_proxy;
  load.directory = settings.directory;
  load.warm_up = phase.warm_up();
  load.duration = phase.length - phase.warm_up();
  load.interval = load.duration;
  load.threads = kThreads;
  load.may_replace = true;  // the rules say whose they are
  for (std::size_t i = 0; i < phase.applications(); ++i) {
    load::ApplicationSettings application;
    application.name = fmt::format("{}{}-{}", kMark, plain(proxy), letter(i));
    application.jobid = job_of(i);
    application.outstanding = phase.in_flight;
    // A connection of BeeGFS carries one request at a time.
    application.connections = settings.is_beegfs() ? phase.in_flight : 1;
    application.size = phase.size;
    application.read_percent = phase.reads ? 100 : 0;
    application.file_size = file_size(settings, phase);
    application.servers = settings.servers;
    load.applications.push_back(std::move(application));
  }
  return load;
}

Measurement measured(const Phase& phase, const load::RunResult& result) {
  Measurement measurement;
  measurement.phase = phase;
  measurement.length = result.duration;
  for (const load::Meter::Totals& each : result.totals) {
    measurement.applications.push_back({.bytes = each.bytes,
                                        .requests = each.requests,
                                        .median = each.latency.quantile(0.5),
                                        .p99 = each.latency.quantile(0.99)});
  }
  if (result.duration > Duration::zero()) {
    measurement.processors = (result.cpu.user + result.cpu.system) / in_seconds(result.duration);
  }
  return measurement;
}

}  // namespace vpfs::selftest
