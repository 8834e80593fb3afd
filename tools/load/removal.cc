#include "tools/load/removal.h"

#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "net/async.h"
#include "tools/load/mount.h"

namespace vpfs::load {
namespace {

net::Task<Result<void>> remove_of(const ApplicationSettings& application, Mount& mount) {
  Result<void> mounted = co_await mount.connect();
  if (!mounted) co_return mounted;
  for (std::uint64_t number = 0; number < application.processes; ++number) {
    std::string name = fmt::format("{}.{}", application.name, number);
    // It replaces the file that is there.
    Result<std::unique_ptr<RemoteFile>> made =
        co_await mount.make_file(std::move(name), number, application);
    VPFS_CO_TRY(made);
    Result<void> removed = co_await (*made)->remove();
    if (!removed) co_return removed;
  }
  co_return Result<void>();
}

}  // namespace

Result<void> remove_files(const LoadSettings& settings, const Clock& clock) {
  std::uint32_t node = 0;
  for (const ApplicationSettings& application : settings.applications) {
    asio::io_context loop{1};
    const std::unique_ptr<Mount> mount = make_mount(settings, application, ++node, clock);
    Result<void> outcome;
    std::exception_ptr problem;
    asio::co_spawn(loop, remove_of(application, *mount),
                   [&](const std::exception_ptr& thrown, Result<void> done) {
                     problem = thrown;
                     outcome = std::move(done);
                     mount->close();
                   });
    loop.run();
    if (problem) std::rethrow_exception(problem);
    if (!outcome) return outcome;
  }
  return {};
}

}  // namespace vpfs::load
