#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "control/wire/dialler.h"
#include "test/control/wire/port_fixture.h"
#include "test/support/comes_true.h"
#include "test/support/control/fake_coordinator.h"

namespace vpfs::control {

// The log, for as long as it lives.
class CapturedLog {
 public:
  CapturedLog() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  // Call it when no thread logs any more.
  [[nodiscard]] std::size_t lines_with(const std::string& what) const {
    const std::string text = text_.str();
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

class DiallerTest : public test::PortFixture {
 protected:
  DiallerTest() {
    options_.limits.first_redial = std::chrono::milliseconds(10);
    options_.limits.slowest_redial = std::chrono::milliseconds(50);
    config_.coordinators = {path()};
  }

  [[nodiscard]] std::string path(const std::string& name = "stages") const {
    return folder_.path() / name;
  }
  [[nodiscard]] DialledCoordinator status() const {
    return port_->coordinator().value_or(DialledCoordinator{});
  }
  [[nodiscard]] bool shows_problem(const std::string& text) const {
    return test::comes_true([&] { return status().problem.find(text) != std::string::npos; });
  }
  [[nodiscard]] bool shows_connected(bool connected = true) const {
    return test::comes_true([&] { return status().connected == connected; });
  }
  static Envelope cycle(std::uint64_t id) {
    Envelope request;
    request.set_id(id);
    request.mutable_cycle()->set_sequence(id);
    request.mutable_cycle()->set_want_report(true);
    return request;
  }
};

}  // namespace vpfs::control
