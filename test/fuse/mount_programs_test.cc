// What users run on a mount: version control, archives, copies, a build, a database and a checker
// of disks. Each program checks what it has written, and a second mount sees the same.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/mount_site.h"
#include "test/support/outcome.h"

namespace vpfs::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

using MountPrograms = EveryMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountPrograms,
                         ::testing::Values(Backend::directory, Backend::embedded, Backend::real),
                         name_of_backend);
using MountOrangefsPrograms = EveryMountTest;
INSTANTIATE_TEST_SUITE_P(Mount, MountOrangefsPrograms,
                         ::testing::Values(Backend::embedded, Backend::real), name_of_backend);

// Those of them that are not installed; "": all are.
std::string missing_of(const std::vector<std::string>& names) {
  const char* const path = std::getenv("PATH");
  const auto is_there = [&](const std::string& name) {
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
    }
    return false;
  };
  const auto missing = std::ranges::find_if_not(names, is_there);
  return missing == names.end() ? "" : "there is no " + *missing;
}

#define SKIP_WITHOUT(...) \
  if (const std::string why = missing_of({__VA_ARGS__}); !why.empty()) GTEST_SKIP() << why

// Git reads no settings but these.
const std::vector<std::pair<std::string, std::string>> kEnvironment = {
    {"LC_ALL", "C"},
    {"HOME", "/nowhere"},
    {"GIT_CONFIG_NOSYSTEM", "1"},
    {"GIT_AUTHOR_NAME", "Ann"},
    {"GIT_AUTHOR_EMAIL", "ann@example.org"},
    {"GIT_COMMITTER_NAME", "Ann"},
    {"GIT_COMMITTER_EMAIL", "ann@example.org"}};

constexpr auto kToolPatience = 120s;

Outcome outcome_of_tool(const std::vector<std::string>& command) {
  Process process(command, kEnvironment);
  return outcome_of(process, kToolPatience);
}

// Runs a program that must succeed, and returns what it says.
std::string good(const std::vector<std::string>& command) {
  const Outcome ended = outcome_of_tool(command);
  EXPECT_TRUE(ended.ok()) << ::testing::PrintToString(command) << ": " << ended.text();
  return ended.text();
}

void make_file(const fs::path& path, const std::string& text, mode_t mode = 0644) {
  std::ofstream(path) << text;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
}

// Files of all sizes, links, modes and names that a copy must keep. OrangeFS has no hard links and
// no pipes.
void plant_tree(const fs::path& root, bool with_all_kinds) {
  fs::create_directories(root / "deep/er/down");
  fs::create_directories(root / "empty");
  fs::permissions(root / "empty", fs::perms::owner_all);
  const std::vector<std::size_t> sizes = {0, 1, 4095, 4096, 65'535, 65'536, 65'537, 300'000};
  for (std::size_t i = 0; i < 16; ++i) {
    const fs::path folder = i % 3 == 0 ? root : i % 3 == 1 ? root / "deep" : root / "deep/er/down";
    make_file(folder / ("file " + std::to_string(i)), random_bytes(sizes[i % sizes.size()] + i));
  }
  make_file(root / "script", "#!/bin/sh\necho it runs\n", 0755);
  make_file(root / "of_nobody_else", "secret", 0600);
  make_file(root / "not_to_be_written", "constant", 0444);
  make_file(root / "n\xC3\xA4me,with;signs", "text");
  fs::create_symlink("../script", root / "deep/link");
  fs::create_symlink("nowhere", root / "dangling");
  fs::create_directory_symlink("deep/er", root / "short");
  fs::last_write_time(root / "script", fs::file_time_type::clock::now() - std::chrono::hours(9999));
  if (!with_all_kinds) return;
  fs::create_hard_link(root / "script", root / "deep/same_script");
  ASSERT_EQ(::mkfifo((root / "pipe").c_str(), 0600), 0);
}

void expect_same_tree(const fs::path& one, const fs::path& two) {
  EXPECT_EQ(good({"diff", "-r", "--no-dereference", "--exclude=pipe", one, two}), "");
}

TEST_P(MountPrograms, GitCommitsClonesAndFindsNothingBroken) {
  SKIP_WITHOUT("git", "diff");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  const fs::path repository = mount.path() / "repository";
  const auto git = [&](std::vector<std::string> words, const std::string& where) {
    words.insert(words.begin(), {"git", "-C", where});
    return good(words);
  };
  good({"git", "init", "--quiet", "--initial-branch=main", repository});
  plant_tree(repository, false);
  git({"add", "--all"}, repository);
  git({"commit", "--quiet", "-m", "first"}, repository);
  make_file(repository / "script", "#!/bin/sh\necho it changes\n", 0755);
  fs::rename(repository / "deep/er", repository / "moved");
  git({"add", "--all"}, repository);
  git({"commit", "--quiet", "-m", "second"}, repository);
  const fs::path copy = mount.path() / "copy";
  good({"git", "clone", "--quiet", "--no-hardlinks", repository, copy});
  EXPECT_THAT(git({"fsck", "--full", "--strict"}, copy), Not(HasSubstr("error")));
  git({"gc", "--quiet", "--prune=now"}, repository);
  git({"fsck", "--full", "--strict"}, repository);
  git({"checkout", "--quiet", "HEAD~1"}, copy);
  git({"checkout", "--quiet", "main"}, copy);
  EXPECT_EQ(git({"status", "--porcelain"}, copy), "");
  // Without a wish git copies where it cannot link. With --local it insists.
  good({"git", "clone", "--quiet", repository, mount.path() / "copy_or_link"});
  EXPECT_NE(
      outcome_of_tool({"git", "clone", "--quiet", "--local", repository, mount.path() / "link"})
          .ok(),
      is_orangefs());
  // Git knows no empty directories.
  fs::remove(repository / "empty");
  EXPECT_EQ(good({"diff", "-r", "--no-dereference", "--exclude=.git", repository, copy}), "");
  const MountProcess other(site.settings());
  git({"fsck", "--full"}, other.path() / "copy");
  EXPECT_EQ(git({"status", "--porcelain"}, other.path() / "copy"), "");
}

TEST_P(MountPrograms, TarPacksAndUnpacksEverything) {
  SKIP_WITHOUT("tar", "diff");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  const fs::path tree = mount.path() / "tree";
  const std::string archive = mount.path() / "archive.tar";
  const std::string copy = mount.path() / "copy";
  plant_tree(tree, !is_orangefs());
  fs::create_directory(copy);
  good({"tar", "-C", tree, "-cf", archive, "."});
  good({"tar", "-C", copy, "-xpf", archive});
  // Content, modes, owners, times to the second, and where links lead.
  EXPECT_EQ(good({"tar", "-C", copy, "--compare", "-f", archive}), "");
  expect_same_tree(tree, copy);
  const MountProcess other(site.settings());
  EXPECT_EQ(good({"tar", "-C", other.path() / "copy", "-df", other.path() / "archive.tar"}), "");
}

TEST_P(MountPrograms, RsyncCopiesNothingTheSecondTime) {
  SKIP_WITHOUT("rsync", "diff");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  const TemporaryDirectory scratch;
  const std::string from = scratch.path() / "tree/";
  plant_tree(from, !is_orangefs());
  const auto copy = [&](const std::string& what, const fs::path& to) {
    std::vector<std::string> command = {"rsync", "-a", "--itemize-changes", what, from, to};
    if (!is_orangefs()) command.insert(command.begin() + 1, "--hard-links");
    return good(command);
  };
  EXPECT_THAT(copy("--checksum", mount.path() / "copy"), HasSubstr("deep/er/down"));
  EXPECT_EQ(copy("--checksum", mount.path() / "copy"), "");
  const MountProcess other(site.settings());
  EXPECT_EQ(copy("--checksum", other.path() / "copy"), "");
  expect_same_tree(from, other.path() / "copy");
  // It compares sizes and times too, and replaces what differs.
  EXPECT_EQ(copy("--no-checksum", other.path() / "copy"), "");
  make_file(from + "script", "#!/bin/sh\necho it changes\n", 0755);
  EXPECT_THAT(copy("--no-checksum", mount.path() / "copy"), HasSubstr(" script"));
  expect_same_tree(from, mount.path() / "copy");
}

TEST_P(MountPrograms, AProgramIsBuiltAndRuns) {
  SKIP_WITHOUT("make", "g++");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  const fs::path root = mount.path() / "program";
  fs::create_directory(root);
  const auto write_answer = [&](int answer) {
    make_file(root / "answer.cc", "int answer() { return " + std::to_string(answer) + "; }\n");
  };
  write_answer(42);
  make_file(root / "main.cc",
            "#include <cstdio>\nint answer();\nint main() { std::printf(\"%d\\n\", answer()); }\n");
  make_file(root / "Makefile",
            "program: main.o answer.o\n\tg++ -g -o $@ $^\n"
            "%.o: %.cc\n\tg++ -g -O1 -c -o $@ $<\n");
  const auto make = [&] { return good({"make", "-j2", "-C", root}); };
  EXPECT_THAT(make(), HasSubstr("-o program"));
  EXPECT_EQ(good({root / "program"}), "42\n");
  EXPECT_THAT(make(), HasSubstr("up to date"));
  // Times of OrangeFS are whole seconds, so what was built is made older than the change.
  const auto earlier = fs::file_time_type::clock::now() - std::chrono::minutes(1);
  for (const char* each : {"main.cc", "answer.cc", "main.o", "answer.o", "program"}) {
    fs::last_write_time(root / each, earlier);
  }
  write_answer(43);
  const std::string said = make();
  EXPECT_THAT(said, HasSubstr("answer.cc"));
  EXPECT_THAT(said, Not(HasSubstr("main.cc")));
  EXPECT_EQ(good({root / "program"}), "43\n");
  const MountProcess other(site.settings());
  EXPECT_EQ(good({other.path() / "program/program"}), "43\n");
}

// --- a database ---

std::string sql(const fs::path& database, const std::string& statements) {
  return good({"sqlite3", "-cmd", ".timeout 60000", database, statements});
}

// A process of its own that adds rows, each in a transaction.
Process row_writer(const fs::path& database, int writer, int rows) {
  std::string statements;
  for (int row = 0; row < rows; ++row) {
    statements += "insert into t values(" + std::to_string(writer) + ", " + std::to_string(row) +
                  ", hex(randomblob(300)));\n";
  }
  return Process({"sqlite3", "-bail", "-cmd", ".timeout 60000", database, statements});
}

TEST_P(MountPrograms, SqliteWithAWriteAheadLogLosesNothing) {
  SKIP_WITHOUT("sqlite3");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings({"allow_other", "locks=local"}));
  for (const std::string journal : {"wal", "delete"}) {
    SCOPED_TRACE(journal);
    const fs::path database = mount.path() / journal;
    EXPECT_EQ(sql(database, "pragma journal_mode=" + journal +
                                "; create table t(writer, row, data); create index i on t(data);"),
              journal + "\n");
    constexpr int kRows = 25;
    std::vector<Process> writers;
    for (int i = 0; i < 3; ++i) writers.push_back(row_writer(database, i, kRows));
    Process dying = row_writer(database, 9, 1000);
    // Readers meanwhile see a whole database.
    EXPECT_EQ(sql(database, "pragma integrity_check"), "ok\n");
    (void)dying.kill();
    for (Process& writer : writers) {
      const Outcome ended = outcome_of(writer, kToolPatience);
      EXPECT_TRUE(ended.ok()) << ended.text();
    }
    const std::string rows = "select count(*), count(distinct row) from t where writer < 9";
    EXPECT_EQ(sql(database, rows), "75|25\n");
    EXPECT_EQ(sql(database, "pragma integrity_check"), "ok\n");
    const MountProcess other(site.settings({"allow_other", "locks=local"}));
    EXPECT_EQ(sql(other.path() / journal, rows + "; pragma integrity_check"), "75|25\nok\n");
  }
}

TEST_P(MountOrangefsPrograms, SqliteWithoutLocksIsRefusedAndHarmsNothing) {
  SKIP_WITHOUT("sqlite3");
  const MountSite site(GetParam());
  const MountProcess locked(site.settings({"allow_other", "locks=local"}));
  const MountProcess mount(site.settings());
  for (const std::string journal : {"wal", "delete"}) {
    SCOPED_TRACE(journal);
    const fs::path database = locked.path() / journal;
    sql(database,
        "pragma journal_mode=" + journal + "; create table t(a); insert into t values(1)");
    const Outcome write =
        outcome_of_tool({"sqlite3", mount.path() / journal, "insert into t values(2)"});
    EXPECT_FALSE(write.ok());
    EXPECT_THAT(write.text(), HasSubstr("database is locked"));
    const Outcome fresh = outcome_of_tool({"sqlite3", mount.path() / "new", "create table t(a)"});
    EXPECT_FALSE(fresh.ok());
    EXPECT_EQ(sql(database, "select count(*) from t; pragma integrity_check"), "1\nok\n");
  }
}

// --- a checker of disks ---

std::vector<std::string> fio_jobs(const fs::path& directory, const std::string& more) {
  std::vector<std::string> command = {"fio",
                                      "--directory=" + directory.string(),
                                      "--size=4m",
                                      "--verify=crc32c",
                                      "--verify_fatal=1",
                                      "--verify_state_save=0",
                                      "--fallocate=none",
                                      "--output-format=terse"};
  if (!more.empty()) command.push_back(more);
  for (const std::string way : {"write", "randwrite"}) {
    for (const std::string direct : {"0", "1"}) {
      command.insert(command.end(),
                     {"--name=" + way + direct, "--stonewall", "--rw=" + way, "--direct=" + direct,
                      way == "write" ? "--bs=128k" : "--bsrange=4k-64k", "--numjobs=2",
                      direct == "1" ? "--ioengine=libaio" : "--ioengine=psync", "--iodepth=8"});
    }
  }
  return command;
}

TEST_P(MountPrograms, FioFindsEveryBlockThatItWrote) {
  SKIP_WITHOUT("fio");
  const MountSite site(GetParam());
  const MountProcess mount(site.settings());
  good(fio_jobs(mount.path(), "--do_verify=1"));
  const MountProcess other(site.settings());
  good(fio_jobs(other.path(), "--verify_only"));
  // That check is able to fail.
  const int file = ::open((mount.path() / "write0.0.0").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(file, "wrong", 5, 1'000'000), 5);
  ASSERT_EQ(::close(file), 0);
  EXPECT_FALSE(outcome_of_tool(fio_jobs(other.path(), "--verify_only")).ok());
}

}  // namespace
}  // namespace vpfs::test
