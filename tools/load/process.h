#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/async.h"
#include "tools/load/filler.h"
#include "tools/load/meter.h"
#include "tools/load/mount.h"
#include "tools/load/places.h"
#include "tools/load/run_end.h"
#include "tools/load/schedule.h"
#include "tools/load/settings.h"

namespace vpfs::load {

// One process of an application: its own file, and a number of workers that each keep one request
// in flight. Belongs to the strand of one event loop.
class Process {
 public:
  struct Context {
    const LoadSettings& settings;
    const ApplicationSettings& application;
    const Filler& filler;
    const Clock& clock;
    const RunEnd& end;
  };

  // `number` counts the processes of one application. The mount may be shared; it and `meter`
  // outlive the process.
  Process(const Context& context, std::uint64_t number, Mount& mount, Meter& meter);

  // Connects the mount, creates the file, and fills it if there will be reads. Must complete before
  // run().
  [[nodiscard]] net::Task<Result<void>> prepare();
  // Does the work. `origin` is the beginning of the run.
  [[nodiscard]] net::Task<> run(TimePoint origin);
  // Checks everything that was written, when verifying, and removes the file.
  [[nodiscard]] net::Task<> finish();
  // Ends all operations under way on the mount.
  void close() { mount_.close(); }

 private:
  [[nodiscard]] net::Task<> fill(std::uint64_t first_place, std::uint64_t step);
  [[nodiscard]] net::Task<> work(TimePoint origin);
  [[nodiscard]] net::Task<> check(std::uint64_t first_place, std::uint64_t step);
  [[nodiscard]] net::Task<> one_request(TimePoint origin, std::vector<std::byte>& buffer);
  [[nodiscard]] net::Task<Result<void>> read(std::uint64_t place, std::vector<std::byte>& buffer);
  [[nodiscard]] net::Task<Result<void>> write(std::uint64_t place, std::vector<std::byte>& buffer);
  void verify(std::uint64_t place, std::span<const std::byte> data, std::uint64_t generation);
  void failed(const Error& error);

  const LoadSettings& settings_;
  const ApplicationSettings& application_;
  const Filler& filler_;
  const Clock& clock_;
  Mount& mount_;
  Meter& meter_;
  Schedule schedule_;
  Places places_;
  std::uint64_t number_;
  std::uint64_t left_;  // requests to begin
  std::string name_;    // of the file
  std::uint64_t file_id_;
  std::unique_ptr<RemoteFile> file_;
  bool reported_ = false;
  std::optional<Error> fill_error_;
};

}  // namespace vpfs::load
