// Keys that every program with a stage has, in the words of one that is not a proxy. What they mean
// is tested with the proxy's (test/proxy/config/config_test.cc, host_checks_test.cc).
#include "control/host/config.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/control/host/program_config.h"
#include "test/support/process.h"

namespace vpfs::control {
namespace {

std::string errors_of(const std::string& text, const test::ProgramConfig* running = nullptr) {
  ConfigErrors errors("p.yaml");
  const test::ProgramConfig config = test::parse_program(text, errors, running);
  if (errors.empty()) check_process(config, errors, test::kProgramName, nullptr);
  return errors.to_string();
}

TEST(HostConfig, TheKeysOfAProcessAndOfItsPortsAreRead) {
  ConfigErrors errors("p.yaml");
  const HostConfig config = test::parse_program(
      "program: {status_file: s.json, status_interval: 1 s, log: ./a.log, log_level: warn}\n"
      "control: {socket: /run/p, journal: /var/j, history: /var/h, ledger: /var/l, name: n, http: "
      "'127.0.0.1:1', "
      "fallback: last}\n",
      errors);
  EXPECT_EQ(errors.to_string(), "");
  EXPECT_EQ(config.status_file, "s.json");
  EXPECT_EQ(config.status_interval, std::chrono::seconds(1));
  EXPECT_EQ(config.log, "./a.log");
  EXPECT_EQ(config.log_level, "warn");
  EXPECT_EQ(config.control.socket, "/run/p");
  EXPECT_EQ(config.journal, "/var/j");
  EXPECT_EQ(config.history, "/var/h");
  EXPECT_EQ(config.ledger, "/var/l");
  EXPECT_EQ(config.name, "n");
  EXPECT_EQ(config.http.address, "127.0.0.1:1");
  EXPECT_EQ(config.fallback.mode, stage::Fallback::Mode::last);
}

TEST(HostConfig, ErrorsHaveTheNameOfTheProgram) {
  EXPECT_EQ(errors_of("program: {log: journl}\n"),
            "p.yaml:1: program.log: 'journl' is not `stderr`, `journal` or a file with its "
            "directory, such as ./vpfs-test.log\n");
  EXPECT_EQ(errors_of("program: {status_file: /nowhere/at/all/s.json}\n"),
            "p.yaml:1: program.status_file: the folder '/nowhere/at/all' does not exist\n");
  const test::TemporaryDirectory folder;
  EXPECT_EQ(errors_of(fmt::format("program: {{status_file: {}}}\n", folder.path().string())),
            fmt::format("p.yaml:1: program.status_file: '{}' is a directory, not a file\n",
                        folder.path().string()));
}

TEST(HostConfig, TheJournalAndTheHttpPortStayWhileTheProgramRuns) {
  const test::ProgramConfig running;
  EXPECT_EQ(errors_of("control: {journal: /tmp/j, http: '127.0.0.1:1'}\n", &running),
            "p.yaml:1: control.journal: cannot change while the program runs: restart it\n"
            "p.yaml:1: control.http: cannot change while the program runs: restart it\n");
  EXPECT_EQ(errors_of("program: {log_level: warn}\n", &running), "");
}

// A start would fail.
TEST(HostConfig, FoldersOfWhatAStartMakesAreLookedFor) {
  const test::TemporaryDirectory folder;
  const auto problems_in = [](const std::string& where) {
    ConfigErrors errors("p.yaml");
    const test::ProgramConfig config = test::parse_program(
        fmt::format("control: {{socket: {0}/s, audit: {0}/a, journal: {0}/j, history: {0}/h,"
                    " ledger: {0}/l}}\n",
                    where),
        errors);
    check_folders(config, errors);
    return errors.to_string();
  };
  EXPECT_EQ(problems_in(folder.path().string()), "");
  std::string expected;
  for (const char* key : {"socket", "audit", "journal", "history", "ledger"}) {
    expected += fmt::format("p.yaml:1: control.{}: the folder '/nowhere' does not exist\n", key);
  }
  EXPECT_EQ(problems_in("/nowhere"), expected);
}

}  // namespace
}  // namespace vpfs::control
