#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/wire/control.pb.h"
#include "tools/recording/recording.h"
#include "tools/vpfsctl/site/answer.h"

namespace vpfs::ctl {

// Asks the proxies of the command line.
using AskStages = std::function<std::vector<ProxyAnswer>(const control::Envelope& request)>;

struct Fetched {
  recording::Recording recording;
  bool names_are_full = false;  // some of its requests have no connection or virtual PFS
  // What one of them answered instead; nothing: all is there.
  std::vector<ProxyAnswer> failures;
};
// The recording of the one stage that is asked, as it is now. It may go on meanwhile. An error is
// about the command line or the answer.
[[nodiscard]] Result<Fetched> fetch_recording(const AskStages& ask);

enum class DumpFormat : std::uint8_t { json, perfetto, fio };
// By the end of the file's name: .perfetto-trace and .pftrace, .iolog; otherwise JSON lines.
[[nodiscard]] DumpFormat format_of(const std::string& file);

// Writes the file; replaces one that is there when it is complete. Returns what to say of it.
[[nodiscard]] Result<std::string> write_recording(const recording::Recording& recording,
                                                  const std::string& file, DumpFormat format);

}  // namespace vpfs::ctl
