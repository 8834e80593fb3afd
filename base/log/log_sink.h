#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/sinks/base_sink.h>

#include "base/log/journal.h"
#include "base/log/log.h"
#include "base/log/log_file.h"
#include "base/log/repeat_filter.h"
#include "base/system_clock.h"

namespace vpfs {

// The end of the log of a program: one line, or one entry of the journal, for each message. See
// base/log/log.h. flush() writes the summaries of repeated messages that are due.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  LogSink(std::string program, const std::string& target);
  ~LogSink() override;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  void use(const std::string& target);
  void reopen();
  // Writes a message even if it repeats.
  void answer(const spdlog::details::log_msg& message) { about({}, message); }
  // The same, with what the message is about.
  void about(const LogSubject& subject, const spdlog::details::log_msg& message);
  void set_name(const std::string& name);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override;

 private:
  void set_target(const std::string& target);
  void write(const spdlog::details::log_msg& message, TimePoint now);
  void write(spdlog::level::level_enum level, const std::string& text, TimePoint now);
  void write(const std::vector<RepeatFilter::Summary>& summaries, TimePoint now);
  [[nodiscard]] Result<void> send(const spdlog::details::log_msg& message, TimePoint now);
  [[nodiscard]] std::string line_of(const spdlog::details::log_msg& message);

  const std::string program_;
  std::string name_;                     // VPFS_NAME
  const LogSubject* subject_ = nullptr;  // of the message that is being written
  const SystemClock clock_;
  RepeatFilter repeats_;
  std::optional<Journal> journal_;
  std::optional<LogFile> file_;
  // Messages that standard error got since the file or the journal failed.
  std::optional<std::uint64_t> diverted_;
};

}  // namespace vpfs
