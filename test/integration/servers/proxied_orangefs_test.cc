// vpfs-proxy in front of OrangeFS's own servers, used by OrangeFS's own programs and by the client
// library.

#include "test/integration/servers/proxied_orangefs.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "test/support/client_checks.h"
#include "test/support/run_task.h"
#include "test/support/servers/orangefs_wire_client.h"

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

// OrangeFS's servers work on one request of a datafile at a time, apart from I/O beside I/O.
class ProxiedOrangefsQueues : public ProxiedOrangefs {
 protected:
  [[nodiscard]] ProxySettings settings(std::uint16_t server) const override {
    return {.upstream = server,
            .depth = kDepth,
            .timeouts = "hold_min: 10 s, client_stall: 400 ms",
            .virtual_pfs = "a: {weight: 1}",
            .rules = "[{match: {hint: {jobid: a}}, virtual_pfs: a}]"};
  }
  // Here slots are given up.
  void TearDown() override {
    for (const auto& proxy : proxies_) EXPECT_TRUE(proxy->wait_until_idle());
  }

  // Makes a file with one datafile, and returns the datafile's handle.
  orangefs::Handle make_file(const std::string& name) {
    EXPECT_EQ(tool(direct_, "pvfs2-cp", {random_file(name, 20'000), "/v/" + name}), "");
    const std::string told = tool(direct_, "pvfs2-viewdist", {"-f", "/v/" + name});
    const std::string before = "handle: ";
    EXPECT_THAT(told, HasSubstr(before));
    return std::stoull(told.substr(told.find(before) + before.size()));
  }
  [[nodiscard]] static orangefs::Request head(orangefs::Handle datafile, const std::string& job) {
    orangefs::Request request;
    request.capability = {.issuer = "S:s0",
                          .fs_id = kFileSystem,
                          .timeout = std::uint64_t{1} << 40U,
                          .op_mask = 0xffffffff,
                          .handles = {datafile}};
    request.hints.push_back(
        {.type = orangefs::HintType::handle, .raw_type = 3, .number = datafile});
    if (!job.empty()) request.hints.push_back({.key = "jobid", .text = job});
    return request;
  }
  [[nodiscard]] static orangefs::Request write_of(orangefs::Handle datafile, std::int64_t size,
                                                  const std::string& job) {
    orangefs::Request request = head(datafile, job);
    request.body = orangefs::IoRequestBody{.handle = datafile,
                                           .fs_id = kFileSystem,
                                           .io_type = orangefs::IoType::write,
                                           .distribution = orangefs::SimpleStripe{},
                                           .file_request = FileRequest::contiguous_bytes(),
                                           .aggregate_size = size};
    return request;
  }
  [[nodiscard]] static orangefs::Request small_read_of(orangefs::Handle datafile) {
    orangefs::Request request = head(datafile, "");
    request.body = orangefs::SmallIoRequest{.handle = datafile,
                                            .fs_id = kFileSystem,
                                            .io_type = orangefs::IoType::read,
                                            .distribution = orangefs::SimpleStripe{},
                                            .file_request = FileRequest::contiguous_bytes(),
                                            .aggregate_size = 4096};
    return request;
  }
  // The proxy of the server that has the datafile.
  ProxyProcess& proxy_of(orangefs::Handle datafile) {
    std::string answers;
    for (const auto& proxy : proxies_) {
      const auto answer = OrangefsWireClient(proxy->port()).call(small_read_of(datafile));
      if (answer && answer->status == 0) return *proxy;
      answers += answer ? fmt::format(" {}", answer->status) : " none";
    }
    throw std::runtime_error("no server has the datafile:" + answers);
  }

  using FileRequest = orangefs::FileRequest;
  static constexpr orangefs::FsId kFileSystem = 453119355;
  static constexpr unsigned kDepth = 4;
};

TEST_F(ProxiedOrangefsQueues, RequestsBehindAWriteWhoseClientStopsKeepNoSlots) {
  const orangefs::Handle slow = make_file("slow");
  ProxyProcess& proxy = proxy_of(slow);
  orangefs::Handle other = 0;
  for (int i = 0; other == 0; ++i) {
    const orangefs::Handle made = make_file("other" + std::to_string(i));
    if (&proxy_of(made) == &proxy) other = made;
  }

  OrangefsWireClient staller(proxy.port());
  const orangefs::Tag write = staller.send(write_of(slow, 100'000, "a"));
  const auto begun = staller.receive_response(write);
  ASSERT_TRUE(begun && begun->status == 0);
  OrangefsWireClient queued(proxy.port());
  std::vector<orangefs::Tag> reads;
  // The last one gets the slot of the write.
  for (unsigned i = 0; i < kDepth; ++i) reads.push_back(queued.send(small_read_of(slow)));
  ASSERT_TRUE(proxy.wait_until(
      [](const nlohmann::json& now) { return now["counters"]["slots_given_up"] == 1; }));

  OrangefsWireClient victim(proxy.port());
  for (int i = 0; i < 5; ++i) {
    const auto answer = victim.call(small_read_of(other));
    ASSERT_TRUE(answer && answer->status == 0) << i;
  }
  EXPECT_TRUE(proxy.logs("of its requests wait at the data server for a slow client"));

  // With its data the write ends, and the server answers the reads.
  staller.send_data(write, std::vector<std::byte>(100'000));
  const auto ended = staller.receive_response(write);
  ASSERT_TRUE(ended && ended->status == 0);
  // In any order.
  std::vector<orangefs::Tag> answered;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto message = queued.receive();
    ASSERT_TRUE(message);
    const auto answer = orangefs::decode_response(message->payload);
    ASSERT_TRUE(answer && answer->status == 0);
    answered.push_back(message->header.tag);
  }
  EXPECT_THAT(answered, testing::UnorderedElementsAreArray(reads));
}

}  // namespace
}  // namespace vpfs::test
