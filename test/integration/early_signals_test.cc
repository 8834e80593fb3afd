// Signals that ask a running program for something reach one that is still starting, as when logs
// are rotated meanwhile. They do not end it.

#include <csignal>
#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/descriptor.h"
#include "test/support/comes_true.h"
#include "test/support/places.h"
#include "test/support/proxy_process.h"

namespace vpfs::test {
namespace {

// Whether the process is this program by now, and has a file of this name open.
bool has_open(pid_t process, const std::string& program, const std::string& name) {
  std::error_code gone;
  const auto runs = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), gone);
  if (!runs.string().ends_with("/" + program)) return false;
  for (std::filesystem::directory_iterator each(fmt::format("/proc/{}/fd", process), gone), end;
       !gone && each != end; each.increment(gone)) {
    std::error_code closed;
    if (std::filesystem::read_symlink(each->path(), closed) == name) return true;
  }
  return false;
}

struct Starting {
  const char* program;
  const char* config;  // with {folder}
  const char* ready;   // what it prints when it serves
};
void PrintTo(const Starting& starting, std::ostream* to) {
  *to << starting.program;
}

class EarlySignals : public ::testing::TestWithParam<Starting> {};

// The configuration comes through a FIFO, so it is known that the program has begun and is not yet
// ready.
TEST_P(EarlySignals, DoNotEndAProgramThatStarts) {
  const TemporaryDirectory folder;
  const std::string config = (folder.path() / "config.yaml").string();
  ASSERT_EQ(::mkfifo(config.c_str(), 0600), 0);
  net::Descriptor writer(::open(config.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(writer);
  Process starting({program(GetParam().program), "--config", config});
  ASSERT_TRUE(comes_true([&] { return has_open(starting.pid(), GetParam().program, config); }));
  for (const int each : {SIGUSR1, SIGUSR2, SIGHUP}) starting.signal(each);
  const std::string text =
      fmt::format(fmt::runtime(GetParam().config), fmt::arg("folder", folder.path().string()));
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  writer.close();
  EXPECT_TRUE(starting.wait_for_line(GetParam().ready, 3 * kPatience)) << starting.errors();
  EXPECT_EQ(starting.stop().code, 0) << starting.errors();
}

INSTANTIATE_TEST_SUITE_P(
    Programs, EarlySignals,
    ::testing::Values(Starting{"vpfs-proxy",
                               "proxy: {{listen: '127.0.0.1:0', upstream: '127.0.0.1:1'}}\n",
                               "vpfs-proxy: ready at"},
                      Starting{"vpfs-coordinator",
                               "name: site\njournal: {folder}/journal\n"
                               "stages: {{listen: {{socket: {folder}/stages}}}}\n",
                               "vpfs-coordinator: ready"}),
    [](const auto& each) {
      return std::string(each.param.program) == "vpfs-proxy" ? "Proxy" : "Coordinator";
    });

}  // namespace
}  // namespace vpfs::test
