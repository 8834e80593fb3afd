#include "base/log/log_sink.h"

#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log/log.h"

namespace vpfs {
namespace {

// As syslog has them.
int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return 2;
    case spdlog::level::err:
      return 3;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::info:
      return 6;
    default:
      return 7;
  }
}

void to_stderr(std::string_view line) {
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string_view view(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

}  // namespace

LogSink::LogSink(std::string program, const std::string& target) : program_(std::move(program)) {
  set_target(target);
}

LogSink::~LogSink() {
  const TimePoint now = clock_.now();
  write(repeats_.take_all(now), now);
}

void LogSink::use(const std::string& target) {
  const std::lock_guard lock(mutex_);
  set_target(target);
}

void LogSink::reopen() {
  const std::lock_guard lock(mutex_);
  if (file_) file_->reopen(clock_.now());
}

void LogSink::about(const LogSubject& subject, const spdlog::details::log_msg& message) {
  const std::lock_guard lock(mutex_);
  subject_ = &subject;
  write(message, clock_.now());
  subject_ = nullptr;
}

void LogSink::set_name(const std::string& name) {
  const std::lock_guard lock(mutex_);
  name_ = name;
}

// Information is written as it comes: it tells of one action or one change.
void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  const TimePoint now = clock_.now();
  const bool admitted = message.level < spdlog::level::warn ||
                        repeats_.admit(message.level, view(message.payload), now);
  write(repeats_.take_due(now), now);
  if (admitted) write(message, now);
}

void LogSink::flush_() {
  const TimePoint now = clock_.now();
  write(repeats_.take_due(now), now);
}

void LogSink::set_target(const std::string& target) {
  journal_.reset();
  file_.reset();
  diverted_.reset();
  if (target == "journal") {
    journal_.emplace(kJournalSocket);
  } else if (target != "stderr") {
    file_.emplace(target);
  }
}

void LogSink::write(const std::vector<RepeatFilter::Summary>& summaries, TimePoint now) {
  for (const RepeatFilter::Summary& each : summaries) {
    write(static_cast<spdlog::level::level_enum>(each.level), each.text, now);
  }
}

void LogSink::write(spdlog::level::level_enum level, const std::string& text, TimePoint now) {
  write(spdlog::details::log_msg(program_, level, text), now);
}

void LogSink::write(const spdlog::details::log_msg& message, TimePoint now) {
  const Result<void> sent = send(message, now);
  if (sent && !diverted_) return;
  if (sent) {
    const std::uint64_t count = *std::exchange(diverted_, std::nullopt);
    write(spdlog::level::warn,
          fmt::format("the log is written here again; {} messages went to standard error", count),
          now);
    return;
  }
  if (!diverted_) {
    diverted_ = 0;
    const std::string text =
        sent.error().message + "; messages go to standard error until it can be written";
    to_stderr(line_of(spdlog::details::log_msg(program_, spdlog::level::err, text)));
  }
  ++*diverted_;
  to_stderr(line_of(message));
}

Result<void> LogSink::send(const spdlog::details::log_msg& message, TimePoint now) {
  if (journal_) {
    Journal::Fields fields = {{"VPFS_NAME", name_}};
    if (subject_ != nullptr) {
      fields.emplace_back("VPFS_RULE", subject_->rule);
      fields.emplace_back("JOBID", subject_->job);
    }
    return journal_->send(program_, priority_of(message.level), view(message.payload), fields);
  }
  const std::string line = line_of(message);
  if (file_) return file_->append(line, now);
  to_stderr(line);
  return {};
}

std::string LogSink::line_of(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  return {line.data(), line.size()};
}

}  // namespace vpfs
