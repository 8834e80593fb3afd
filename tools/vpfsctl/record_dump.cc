#include "tools/vpfsctl/record_dump.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "control/words/printable.h"
#include "tools/output/output_file.h"
#include "tools/recording/fio_iolog.h"
#include "tools/recording/json_lines.h"
#include "tools/recording/perfetto.h"

namespace vpfs::ctl {
namespace {

using recording::Recording;
using stage::Recorded;

// Words come as they are in the memory of the stage.
static_assert(std::endian::native == std::endian::little);

// More than a stage keeps.
constexpr std::size_t kMostNames = std::size_t{1} << 20;
constexpr std::size_t kMostNameBytes = std::size_t{256} << 20;

class Fetch {
 public:
  Fetch(const AskStages& ask, Fetched& to) : ask_(ask), to_(to) {}

  Result<void> run() {
    control::Record request;
    std::optional<control::RecordReply> head = ask(request);
    if (!head) return {};
    if (head->number() == 0) {
      return fail(fmt::format("{}: there is no recording: `record start` begins one", name_));
    }
    Recording& recording = to_.recording;
    constexpr std::uint64_t kMostRequests = std::uint64_t{1} << 25;  // 1 GiB has 2^24
    recording.stage = name_;
    recording.began = WallTime(std::chrono::seconds(head->began_at()));
    recording.length =
        std::chrono::microseconds(std::min(head->length_us(), recording::kLongestUs));
    request.set_action(control::Record::READ);
    request.set_number(head->number());
    std::uint64_t next = 0;
    while (next < head->written()) {
      request.set_from(next);
      std::optional<control::RecordReply> page = read(request);
      if (!problem_.empty()) return fail(problem_);
      if (!page) return {};
      if (page->first() < next) return fail(fmt::format("{}: its recording goes back", name_));
      recording.overwritten += page->first() - next;
      // A stage may be faster than this, so that a page was overwritten meanwhile.
      if (page->requests().empty() && page->first() == next) break;
      if (page->requests().size() % sizeof(Recorded::Words) != 0) {
        return fail(fmt::format("{}: its recording has a part of a request", name_));
      }
      VPFS_TRY(add(page->requests()));
      if (recording.requests.size() > kMostRequests) {
        return fail(fmt::format("{}: its recording has no end", name_));
      }
      next = page->first() + page->requests().size() / sizeof(Recorded::Words);
    }
    for (const Recorded& each : recording.requests) {
      if (each.virtual_pfs < recording.names.size() && each.origin < recording.origins.size()) {
        continue;
      }
      return fail(fmt::format("{}: its recording has a request without a name", name_));
    }
    return {};
  }

 private:
  std::optional<control::RecordReply> ask(const control::Record& what) {
    control::Envelope request;
    *request.mutable_record() = what;
    std::vector<ProxyAnswer> answers = ask_(request);
    if (answers.size() != 1 || answers.front().outcome != Outcome::done) {
      to_.failures = std::move(answers);
      return std::nullopt;
    }
    name_ = words::printable(answers.front().name);
    return std::move(*answers.front().reply.mutable_record_reply());
  }

  // A page, and all names that it may use.
  std::optional<control::RecordReply> read(control::Record request) {
    std::optional<control::RecordReply> page;
    for (bool has_all = false; !has_all;) {
      request.set_names(static_cast<std::uint32_t>(to_.recording.names.size()));
      request.set_origins(static_cast<std::uint32_t>(to_.recording.origins.size()));
      std::optional<control::RecordReply> reply = ask(request);
      if (!reply) return std::nullopt;
      to_.names_are_full = to_.recording.names_are_full = reply->names_are_full();
      for (const std::string& name : reply->names()) {
        name_bytes_ += name.size();
        to_.recording.names.push_back(name);
      }
      for (const control::RecordOrigin& origin : reply->origins()) {
        name_bytes_ += origin.client().size() + origin.jobid().size();
        to_.recording.origins.push_back({.connection = origin.connection(),
                                         .client = origin.client(),
                                         .jobid = origin.jobid()});
      }
      has_all = reply->names().empty() && reply->origins().empty();
      if (to_.recording.names.size() + to_.recording.origins.size() > kMostNames) {
        problem_ = fmt::format("{}: its recording has more than {} names", name_, kMostNames);
        return std::nullopt;
      }
      if (name_bytes_ > kMostNameBytes) {
        problem_ =
            fmt::format("{}: its recording has more than {} bytes of names", name_, kMostNameBytes);
        return std::nullopt;
      }
      if (!page) page = std::move(reply);
      request.set_from(UINT64_MAX);
    }
    return page;
  }

  Result<void> add(const std::string& words) {
    constexpr std::size_t kSize = sizeof(Recorded::Words);
    for (std::size_t at = 0; at < words.size(); at += kSize) {
      Recorded::Words one;
      std::memcpy(one.data(), words.data() + at, kSize);
      const std::optional<Recorded> request = Recorded::from(one);
      if (!request || !recording::is_sane(*request)) {
        return fail(
            fmt::format("{}: its recording has words that this program does not know", name_));
      }
      to_.recording.requests.push_back(*request);
    }
    return {};
  }

  const AskStages& ask_;
  Fetched& to_;
  std::string name_;
  std::string problem_;  // of the names
  std::size_t name_bytes_ = 0;
};

}  // namespace

Result<Fetched> fetch_recording(const AskStages& ask) {
  Fetched fetched;
  VPFS_TRY(Fetch(ask, fetched).run());
  return fetched;
}

DumpFormat format_of(const std::string& file) {
  const std::string_view name = file;
  if (name.ends_with(".perfetto-trace") || name.ends_with(".pftrace")) return DumpFormat::perfetto;
  return name.ends_with(".iolog") ? DumpFormat::fio : DumpFormat::json;
}

Result<std::string> write_recording(const Recording& recording, const std::string& file,
                                    DumpFormat format) {
  output::OutputFile out;
  VPFS_TRY(out.open(file, S_IRUSR | S_IWUSR));  // it tells what all users did
  const recording::Sink sink = [&](std::string_view part) { out.write(part); };
  std::string text = fmt::format("{}: {} requests", file, recording.requests.size());
  switch (format) {
    case DumpFormat::json:
      write_json_lines(recording, sink);
      break;
    case DumpFormat::perfetto:
      write_perfetto(recording, sink);
      break;
    case DumpFormat::fio:
      if (const std::uint64_t left_out = write_fio_iolog(recording, sink); left_out > 0) {
        text += fmt::format(
            "; {} reads and writes are not in it, since their place in a file is "
            "not known",
            left_out);
      }
      break;
  }
  VPFS_TRY(out.finish());
  if (recording.overwritten > 0) {
    text += fmt::format("; {} before them were overwritten", recording.overwritten);
  }
  return text;
}

}  // namespace vpfs::ctl
