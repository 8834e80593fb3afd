#include "tools/recording/fio_iolog.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace vpfs::recording {
namespace {

using stage::Recorded;

// Words of an iolog are separated by spaces, and names are relative to fio's directory.
std::string file_name(const Recording& recording, const Recorded& request) {
  std::string name = recording.name_of(request);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '_');
  return fmt::format("{}.{:016x}", name, request.file);
}

bool is_known(const Recorded& request) {
  return request.kind != IoKind::metadata && request.file != 0 &&
         request.offset != Recorded::kNoOffset && request.asked > 0;
}

}  // namespace

std::uint64_t write_fio_iolog(const Recording& recording, const Sink& sink) {
  std::vector<const Recorded*> requests;
  std::uint64_t left_out = 0;
  for (const Recorded& each : recording.requests) {
    if (is_known(each)) {
      requests.push_back(&each);
    } else if (each.kind != IoKind::metadata) {
      ++left_out;
    }
  }
  std::ranges::sort(requests, {},
                    [](const Recorded* each) { return std::pair(arrival(*each), each); });
  sink("fio version 3 iolog\n");
  std::set<std::string> files;
  for (const Recorded* each : requests) files.insert(file_name(recording, *each));
  for (const std::string& file : files) sink(fmt::format("0 {} add\n", file));
  for (const std::string& file : files) sink(fmt::format("0 {} open\n", file));
  const TimePoint first = requests.empty() ? TimePoint() : arrival(*requests.front());
  std::int64_t last = 0;
  for (const Recorded* each : requests) {
    last = (arrival(*each) - first) / std::chrono::microseconds(1);
    sink(fmt::format("{} {} {} {} {}\n", last, file_name(recording, *each), word_of(each->kind),
                     each->offset, each->asked));
  }
  for (const std::string& file : files) sink(fmt::format("{} {} close\n", last, file));
  return left_out;
}

}  // namespace vpfs::recording
