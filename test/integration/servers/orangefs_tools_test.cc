// OrangeFS's own programs on vpfs-server. They are not packaged: the tests look for them below
// VPFS_ORANGEFS_PREFIX, or beside the pvfs2-server on PATH, and skip without them.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/servers/orangefs_servers.h"

namespace vpfs::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct StorageSetting {
  const char* engine;
  int servers;
};

class OrangefsTools : public testing::TestWithParam<StorageSetting> {
 protected:
  void SetUp() override {
    const auto tools = OrangefsServers::find_tools();
    if (!tools) {
      GTEST_SKIP() << "no OrangeFS: neither VPFS_ORANGEFS_PREFIX nor pvfs2-server on PATH";
    }
    tools_ = *tools;
    std::string config = "file_system: {name: vpfs, id: 1234}\nservers:\n";
    for (int i = 0; i < GetParam().servers; ++i) {
      ports_.emplace_back();
      config += "  - {alias: s" + std::to_string(i) + ", addresses: ['tcp://" +
                ports_.back().address() + "']}\n";
    }
    config += std::string("storage: {capacity: 256 MiB, engine: ") + GetParam().engine +
              ", path: " + directory_.path().string() + "/store}\n";
    config_ = directory_.write("server.yaml", config);
    tab_ = directory_.write(
        "tab", "tcp://" + ports_[0].address() + "/vpfs /v pvfs2 defaults,noauto 0 0\n");
    start();
  }

  void start() {
    for (int i = 0; i < GetParam().servers; ++i) {
      servers_.emplace_back(std::vector<std::string>{program("vpfs-server"), "--config", config_,
                                                     "--server", "s" + std::to_string(i)});
    }
    for (Process& server : servers_) {
      ASSERT_TRUE(server.wait_for_line("ready on")) << server.errors();
    }
  }

  // Like run_orangefs_tool().
  std::string tool(const std::string& name, std::vector<std::string> arguments) {
    return run_orangefs_tool(tools_ + "/" + name, std::move(arguments), tab_);
  }
  std::string random_file(const std::string& name, std::size_t size) {
    return directory_.write(name, random_bytes(size));
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }

  TemporaryDirectory directory_;
  std::vector<ReservedPort> ports_;
  std::vector<Process> servers_;
  std::string tools_;
  std::string config_;
  std::string tab_;
};

TEST_P(OrangefsTools, PingFindsTheFileSystemSound) {
  EXPECT_THAT(tool("pvfs2-ping", {"-m", "/v"}), HasSubstr("appears to be correctly configured"));
}

TEST_P(OrangefsTools, CopiesInAndOutAreEqual) {
  for (const std::size_t size : {0U, 1U, 5000U, 65536U, 200'001U, 10'000'001U}) {
    const std::string name = "f" + std::to_string(size);
    const std::string file = random_file(name, size);
    for (const std::string block : {"4000", "65536", "10485760"}) {
      const std::string there = "/v/" + name + "-" + block;
      EXPECT_EQ(tool("pvfs2-cp", {"-b", block, file, there}), "");
      EXPECT_EQ(tool("pvfs2-cp", {"-b", block, there, path("back")}), "");
      EXPECT_EQ(read_text(path("back")), read_text(file)) << there;
    }
  }
}

TEST_P(OrangefsTools, ListsWhatTheyMade) {
  const std::string file = random_file("f", 300'000);
  EXPECT_EQ(tool("pvfs2-mkdir", {"/v/d"}), "");
  EXPECT_EQ(tool("pvfs2-mkdir", {"/v/d/e"}), "");
  EXPECT_EQ(tool("pvfs2-cp", {file, "/v/d/f"}), "");
  EXPECT_EQ(tool("pvfs2-touch", {"/v/d/e/empty"}), "");
  EXPECT_EQ(tool("pvfs2-ln", {"-s", "f", "/v/d/link"}), "");
  EXPECT_EQ(tool("pvfs2-chmod", {"640", "/v/d/f"}), "");
  const std::string list = tool("pvfs2-ls", {"-l", "/v/d"});
  EXPECT_THAT(list, HasSubstr("-rw-r-----"));
  EXPECT_THAT(list, HasSubstr("300000"));
  EXPECT_THAT(list, HasSubstr("link -> f"));
  EXPECT_THAT(list, HasSubstr("drwxr-xr-x"));
  EXPECT_THAT(tool("pvfs2-ls", {"/v/d/e"}), HasSubstr("empty"));
  EXPECT_EQ(tool("pvfs2-cp", {"/v/d/link", path("back")}), "");
  EXPECT_EQ(read_text(path("back")), read_text(file));
  EXPECT_THAT(tool("pvfs2-ls", {"/v/nothing"}), HasSubstr("No such file"));
  EXPECT_THAT(tool("pvfs2-stat", {"/v/d/f"}), HasSubstr("300000"));
  EXPECT_THAT(tool("pvfs2-statfs", {"-m", "/v"}), HasSubstr("bytes available"));
}

// Runs a shell script in a mount and in a plain directory, and compares their output.
TEST_P(OrangefsTools, AFuseMountBehavesAsAPlainDirectory) {
  if (!std::filesystem::exists(tools_ + "/pvfs2fuse")) GTEST_SKIP() << "no pvfs2fuse";
  if (::access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/fuse";
  const std::string file = random_file("f", 3'000'001);
  const std::string mount = path("mount");
  const std::string plain = path("plain");
  std::filesystem::create_directory(mount);
  std::filesystem::create_directory(plain);
  Process fuse(
      {tools_ + "/pvfs2fuse", "-f", "-o", "fs_spec=tcp://" + ports_[0].address() + "/vpfs", mount},
      {{"PVFS2TAB_FILE", tab_}});
  const auto mounted = [&] {
    return Process({"mountpoint", "-q", mount}).wait().value_or(Process::Exit{}).ok();
  };
  for (int i = 0; i < 100 && !mounted(); ++i) std::this_thread::sleep_for(50ms);
  if (!mounted()) GTEST_SKIP() << "cannot mount: " << fuse.errors();

  const std::string script = directory_.write("script", R"(
    cd "$1" && mkdir a a/b && cp "$2" a/b/f && cmp "$2" a/b/f && mv a/b/f a/g && ls -R
    cp "$2" other && mv other a/g && cmp "$2" a/g && stat -c %s a/g
    truncate -s 100000 a/g && stat -c %s a/g && truncate -s 900000 a/g && md5sum a/g
    rmdir a 2>/dev/null || echo not empty
    ln -s ../g a/b/l && readlink a/b/l && md5sum < a/b/l
    chmod 640 a/g && stat -c %a a/g
    dd if="$2" of=sparse bs=64k seek=3 status=none && md5sum sparse
    printf more >> sparse && tail -c 4 sparse && echo
    i=0; while [ $i -lt 150 ]; do echo $i > a/n$i; i=$((i+1)); done; ls a | wc -l; cat a/n* | md5sum
    rm -r a && ls
  )");
  const auto run = [&](const std::string& where) {
    Process shell({"/bin/sh", script, where, file});
    const auto exit = shell.wait(120s);
    return (exit ? std::to_string(exit->code) : "stuck") + "\n" + shell.output() + shell.errors();
  };
  const std::string expected = run(plain);
  EXPECT_EQ(run(mount), expected);
  Process({"umount", "-l", mount}).wait();
  fuse.stop();
}

TEST_P(OrangefsTools, WhatWasCopiedInSurvivesKill) {
  if (std::string(GetParam().engine) != "directory") GTEST_SKIP() << "the memory engine forgets";
  const std::string file = random_file("f", 1'000'000);
  EXPECT_EQ(tool("pvfs2-cp", {file, "/v/f"}), "");
  for (Process& server : servers_) server.kill();
  servers_.clear();
  start();
  EXPECT_EQ(tool("pvfs2-cp", {"/v/f", path("back")}), "");
  EXPECT_EQ(read_text(path("back")), read_text(file));
}

INSTANTIATE_TEST_SUITE_P(Servers, OrangefsTools,
                         testing::Values(StorageSetting{"memory", 1}, StorageSetting{"memory", 2},
                                         StorageSetting{"directory", 2}),
                         [](const auto& info) {
                           return std::string(info.param.engine) +
                                  std::to_string(info.param.servers);
                         });

}  // namespace
}  // namespace vpfs::test
