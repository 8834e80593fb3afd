// How programs and scripts treat the command lines that a newcomer types.

#include <chrono>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/version.h"
#include "test/support/outcome.h"
#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Outcome outcome_of_program(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program(name));
  return outcome_of(arguments);
}

const std::vector<std::string> kConfigured = {"vpfs-proxy", "vpfs-server", "vpfs-load"};
const std::vector<std::string> kPrograms = {"vpfs-proxy", "vpfs-server", "vpfs-load",
                                            "vpfs-decode"};
const std::vector<std::string> kDocumented = {"vpfs-proxy",  "vpfs-server", "vpfs-load",
                                              "vpfs-decode", "vpfs-sim",    "vpfsctl"};

TEST(CommandLines, EveryProgramTellsItsVersionWithoutAConfiguration) {
  for (const std::string& name : kDocumented) {
    const Outcome outcome = outcome_of_program(name, {"--version"});
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_EQ(outcome.output, name + " " + std::string(version()) + "\n");
  }
}

TEST(CommandLines, HelpNeedsNothingElse) {
  for (const std::string& name : kDocumented) {
    const Outcome outcome = outcome_of_program(name, {"--help"});
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_THAT(outcome.output, HasSubstr("--version")) << name;
  }
}

// The first group of every match of `pattern` in `text`.
std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator each(text.begin(), text.end(), regex), end; each != end; ++each) {
    found.insert((*each)[1].str());
  }
  return found;
}

// What a program takes says all that its commands take.
std::set<std::string> options_of(const std::string& name, const std::string& pattern) {
  std::set<std::string> found;
  std::istringstream lines(outcome_of_program(name, {"--describe-options"}).output);
  for (std::string line; std::getline(lines, line);) {
    const std::regex option("^option\t[^\t]*\t([^\t]*)");
    std::smatch match;
    if (!std::regex_search(line, match, option)) continue;
    found.merge(matches(match[1].str(), pattern));
  }
  return found;
}

// The pages are in mdoc(7): `.Fl -config` is --config. Examples spell options as they are typed.
TEST(CommandLines, ManualPagesHaveTheOptionsOfTheProgramsAndNoOthers) {
  for (const std::string& name : kDocumented) {
    const bool is_user_command =
        std::filesystem::exists(program_directory() / "../man" / (name + ".1"));
    const std::string page =
        read_text(program_directory() / "../man" / (name + (is_user_command ? ".1" : ".8")));
    EXPECT_EQ(matches(page, R"((?:Fl |\| |\s-)-([a-z][-a-z]*))"),
              options_of(name, R"(--([a-z][-a-z]*))"))
        << name;
    EXPECT_EQ(matches(page, R"(Fl ([a-z])\b)"), options_of(name, R"((?:^|,)-([a-z])\b)")) << name;
    const std::string help = outcome_of_program(name, {"--help"}).output;
    EXPECT_EQ(matches(help, R"([\s,]--([a-z][-a-z]*))").count("version"), 1U) << name;
  }
}

TEST(CommandLines, ManualPagesAreCorrectMdoc) {
  if (!outcome_of({"sh", "-c", "command -v mandoc"}).ok()) {
    GTEST_SKIP() << "mandoc is not installed";
  }
  for (const std::string& name : kDocumented) {
    const bool is_user_command =
        std::filesystem::exists(program_directory() / "../man" / (name + ".1"));
    const auto page = program_directory() / "../man" / (name + (is_user_command ? ".1" : ".8"));
    const Outcome outcome = outcome_of({"mandoc", "-T", "lint", "-W", "warning", page.string()});
    EXPECT_EQ(outcome.output, "") << name;
  }
}

TEST(CommandLines, AWrongOptionIsNamedAndNotWhatIsMissingBesideIt) {
  for (const std::string& name : kPrograms) {
    const Outcome outcome = outcome_of_program(name, {"--confg=x"});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.errors, HasSubstr("--confg")) << name;
    EXPECT_THAT(outcome.errors, Not(HasSubstr("required"))) << name;
  }
}

TEST(CommandLines, WhatIsMissingIsNamed) {
  for (const std::string& name : kPrograms) {
    const Outcome outcome = outcome_of_program(name, {});
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.errors,
                HasSubstr(name == "vpfs-decode" ? "FILE is required" : "--config is required"));
  }
}

TEST(CommandLines, EachReasonWhyAConfigurationCannotBeReadIsToldApart) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path().string();
  const std::string empty = directory.write("empty.yaml", "");
  for (const std::string& name : kConfigured) {
    for (const auto& [file, message] : std::vector<std::pair<std::string, std::string>>{
             {empty, empty + ": is empty\n"},
             {folder + "/none", folder + "/none: cannot be read: No such file or directory\n"},
             {folder, folder + ": is a directory, not a file\n"}}) {
      const Outcome outcome = outcome_of_program(name, {"--config", file, "--check-config"});
      EXPECT_EQ(outcome.code, 2) << name;
      EXPECT_EQ(outcome.errors, message) << name;
    }
  }
}

TEST(CommandLines, ACheckSaysOkAndWhatTheFileWillDo) {
  const std::string conf = source("conf/");
  const Outcome proxy =
      outcome_of_program("vpfs-proxy", {"--config", conf + "sfq.yaml", "--check-config"});
  EXPECT_EQ(proxy.code, 0) << proxy.errors;
  EXPECT_EQ(proxy.errors, "");
  EXPECT_THAT(proxy.output, StartsWith(conf + "sfq.yaml: ok\n  listens at 127.0.0.1:4334 for the"));
  EXPECT_THAT(proxy.output, HasSubstr("simulation  weight 4\n"));
  EXPECT_THAT(proxy.output, HasSubstr("hint jobid=backup      -> backup\n"));

  const Outcome server = outcome_of_program(
      "vpfs-server", {"--config", conf + "server.yaml", "--check-config", "--server", "s1"});
  EXPECT_EQ(server.code, 0) << server.errors;
  EXPECT_THAT(server.output,
              StartsWith(conf + "server.yaml: ok\n  file system vpfs (id 1234) of 2"));
  EXPECT_THAT(server.output, HasSubstr("s1 listens at 127.0.0.1:3335, announces "
                                       "tcp-px://127.0.0.1:4335   <- this server\n"));

  const Outcome load = outcome_of_program(
      "vpfs-load", {"--config", conf + "load.yaml", "--check-config", "--duration", "3 s"});
  EXPECT_EQ(load.code, 0) << load.errors;
  EXPECT_THAT(load.output, StartsWith(conf + "load.yaml: ok\n  runs on tcp://127.0.0.1:3334/vpfs"));
  EXPECT_THAT(load.output, HasSubstr("measures 3 s after a warm-up of 1 s"));
  EXPECT_THAT(load.output, HasSubstr("simulation: 2 processes, each with 1 connection and 8 "
                                     "requests in flight: sequential writes of 1 MiB"));
}

TEST(CommandLines, ACheckTellsWhatIsHardlyMeantAndExitsWithZero) {
  const TemporaryDirectory directory;
  const std::string file = directory.write(
      "p.yaml",
      "proxy: {listen: '127.0.0.1:1', upstream: '127.0.0.1:2'}\n"
      "rules:\n  - {virtual_pfs: default}\n  - {match: {op: read}, virtual_pfs: default}\n");
  const Outcome outcome = outcome_of_program("vpfs-proxy", {"--config", file, "--check-config"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.errors, "warning: " + file +
                                ":4: rules[1]: never applies: rules[0] on line 3 (to default) "
                                "matches all that it would\n");
  EXPECT_THAT(outcome.output, StartsWith(file + ": ok\n"));
}

TEST(CommandLines, AListOfNoServersOrApplicationsIsAMistake) {
  const TemporaryDirectory directory;
  const std::string servers = directory.write("s.yaml", "file_system: {id: 1}\nservers: []\n");
  EXPECT_EQ(outcome_of_program("vpfs-server", {"--config", servers, "--check-config"}).errors,
            servers + ":2: servers: must name at least one\n");
  const std::string addresses =
      directory.write("a.yaml", "file_system: {id: 1}\nservers: [{alias: s0, addresses: []}]\n");
  EXPECT_EQ(outcome_of_program("vpfs-server", {"--config", addresses, "--check-config"}).errors,
            addresses + ":2: servers[0].addresses: is empty: give it a value, or leave it out\n");
  const std::string load =
      directory.write("l.yaml", "file_system: tcp://127.0.0.1:1/v\napplications: []\n");
  EXPECT_EQ(outcome_of_program("vpfs-load", {"--config", load, "--check-config"}).errors,
            load + ":2: applications: must name at least one\n");
}

// Runs a copy of the scripts in a folder without a build. Stubs replace the programs that install
// and build.
TEST(CommandLines, HelpOfAScriptInstallsAndBuildsNothing) {
  const TemporaryDirectory directory;
  const std::filesystem::path tree = source("");
  for (const char* folder : {"script", "bench", "lab"}) {
    std::filesystem::copy(tree / folder, directory.path() / folder,
                          std::filesystem::copy_options::recursive);
  }
  std::filesystem::create_directory(directory.path() / "stubs");
  for (const char* name : {"apt-get", "dpkg-query", "cmake", "sudo"}) {
    const std::string stub =
        directory.write(std::string("stubs/") + name,
                        "#!/bin/sh\necho called " + std::string(name) + " >&2\nexit 9\n");
    std::filesystem::permissions(stub, std::filesystem::perms(0755));
  }
  const std::string path = (directory.path() / "stubs").string() + ":/usr/local/bin:/usr/bin:/bin";
  for (const char* script : {"bench", "bootstrap", "build_demo", "build_release", "demo",
                             "insert-beegfs", "insert-orangefs", "test"}) {
    const std::string file = (directory.path() / "script" / script).string();
    const Outcome outcome = outcome_of({file, "--help"}, {{"PATH", path}});
    EXPECT_EQ(outcome.code, 0) << script << ": " << outcome.errors;
    EXPECT_THAT(outcome.output, StartsWith("usage: script/" + std::string(script)));
    EXPECT_EQ(outcome.errors, "") << script;
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "build")) << script;
  }
  for (const char* script : {"bootstrap", "build_demo", "build_release"}) {
    const std::string file = (directory.path() / "script" / script).string();
    const Outcome outcome = outcome_of({file, "--hlep"}, {{"PATH", path}});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.errors, HasSubstr("unknown argument: --hlep"));
  }
}

}  // namespace
}  // namespace vpfs::test
