// vpfs-proxy in front of OrangeFS's own servers, used by OrangeFS's own programs and by the client
// library.

#include "test/integration/servers/proxied_orangefs.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "test/support/client_checks.h"
#include "test/support/run_task.h"

namespace vpfs::test {
namespace {

using testing::HasSubstr;

TEST_F(ProxiedOrangefs, PingAndCopiesGoThrough) {
  EXPECT_THAT(tool(proxied_, "pvfs2-ping", {"-m", "/v"}), HasSubstr(kSound));
  for (const std::size_t size : {0U, 1U, 5000U, 65536U, 200'001U, 10'000'001U}) {
    const std::string file = random_file("f", size);
    const std::string there = "/v/f" + std::to_string(size);
    EXPECT_EQ(tool(proxied_, "pvfs2-cp", {file, there}), "");
    for (const std::string& mounts : {direct_, proxied_}) {
      EXPECT_EQ(tool(mounts, "pvfs2-cp", {there, path("back")}), "");
      EXPECT_TRUE(read_text(path("back")) == read_text(file)) << there;
    }
    EXPECT_THAT(tool(proxied_, "pvfs2-ls", {"-l", "/v"}), HasSubstr(std::to_string(size)));
  }
}

TEST_F(ProxiedOrangefs, TheClientLibraryReadsWhatItWrote) {
  asio::io_context loop;
  const SystemClock clock;
  const auto address = client::parse_mount_address(servers_->proxied_address());
  ASSERT_TRUE(address);
  auto mounted = run_task(loop, client::FileSystem::mount(*address, {.connections = 2}, clock));
  ASSERT_TRUE(mounted) << mounted.error().message;
  check_names(loop, **mounted);
  check_data(loop, **mounted, 3);
  check_concurrent_io(loop, **mounted);
  (*mounted)->close();
  drain(loop);
  EXPECT_TRUE(proxies_[0]->logs("requests are held for 24 s at most")) << "80 % of 30 s";
}

TEST_F(ProxiedOrangefs, AFuseMountKeepsItsData) {
  if (const std::string why = why_no_pvfs2fuse(); !why.empty()) {
    EXPECT_EQ(tool(proxied_, "pvfs2-cp", {random_file("f", 500'000), "/v/f"}), "");
    GTEST_SKIP() << why;
  }
  const std::string file = random_file("f", 3'000'001);
  const FuseMount mount(*this);
  const std::string script = directory_.write("script", R"(
    cd "$1" || exit 1
    for i in 1 2 3 4; do cp "$2" f$i & done; wait
    for i in 1 2 3 4; do cmp "$2" f$i & done; wait
    dd if="$2" of=small bs=4k count=100 status=none && cmp -n 409600 "$2" small
    mv f1 f2 && cmp "$2" f2 && rm f3 && ls -I lost+found
  )");
  Process shell({"/bin/sh", script, mount.path(), file});
  const auto exit = shell.wait(120s);
  EXPECT_TRUE(exit && exit->ok());
  EXPECT_EQ(shell.output() + shell.errors(), "f2\nf4\nsmall\n");
}

}  // namespace
}  // namespace vpfs::test
