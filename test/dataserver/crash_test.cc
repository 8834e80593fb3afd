// The real program on the directory engine, killed while it works.

#include <cerrno>
#include <csignal>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "protocols/orangefs/errors.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/servers/orangefs_user.h"

namespace vpfs::test {
namespace {

constexpr orangefs::FsId kId = 1234;

class DirectoryServer : public testing::Test {
 protected:
  DirectoryServer() {
    config_ = directory_.write("server.yaml",
                               "file_system: {name: vpfs, id: 1234}\n"
                               "servers:\n"
                               "  - {alias: s0, addresses: [\"tcp://" +
                                   port_.address() +
                                   "\"]}\n"
                                   "storage: {engine: directory, capacity: 64 MiB, path: " +
                                   directory_.path().string() + "/store}\n");
  }
  Process start() {
    Process server({program("vpfs-server"), "--config", config_});
    EXPECT_TRUE(server.wait_for_line("ready on")) << server.errors();
    return server;
  }
  template <typename Body>
  static Body get(OrangefsWireClient& client, const orangefs::Request& request) {
    const auto response = client.call(request);
    const Body* body = response ? std::get_if<Body>(&response->body) : nullptr;
    EXPECT_NE(body, nullptr) << (response ? orangefs::describe_status(response->status) : "closed");
    return body == nullptr ? Body{} : *body;
  }
  orangefs::Attributes attributes(OrangefsWireClient& client, orangefs::Handle handle) {
    return get<orangefs::AttributesResponse>(client, user_.getattr(handle)).attributes;
  }

  TemporaryDirectory directory_;
  ReservedPort port_;
  std::string config_;
  OrangefsUser user_{kId};
};

TEST_F(DirectoryServer, KillLosesNothingThatWasAcknowledged) {
  std::map<std::string, orangefs::Handle> made;
  for (int round = 0; round < 3; ++round) {
    Process server = start();
    OrangefsWireClient client(port_.number());
    const orangefs::Attributes root = attributes(client, OrangefsUser::kRoot);
    for (const auto& [name, handle] : made) {
      const auto found =
          get<orangefs::LookupPathResponse>(client, user_.lookup(OrangefsUser::kRoot, name));
      ASSERT_EQ(found.handles, std::vector<orangefs::Handle>{handle});
      const orangefs::Attributes file = attributes(client, handle);
      const auto data =
          get<orangefs::SmallIoResponse>(client, user_.small_read(file, handle, 0, 0, 1000));
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.data.data()), data.data.size()),
                "data of " + name);
    }
    for (int i = 0; i < 20; ++i) {
      const std::string name = "f" + std::to_string(round) + "-" + std::to_string(i);
      const auto created = get<orangefs::CreateResponse>(client, user_.create(root, 1));
      const orangefs::Handle handle = created.metafile_handle;
      ASSERT_EQ(client.call(user_.link(root, OrangefsUser::kRoot, name, handle))->status, 0);
      const orangefs::Attributes file = attributes(client, handle);
      ASSERT_EQ(client.call(user_.small_write(file, handle, 0, 0, "data of " + name))->status, 0);
      const auto flush = user_.request(
          orangefs::FlushRequest{.handle = file.datafiles[0], .fs_id = kId}, file.capability);
      ASSERT_EQ(client.call(flush)->status, 0);
      made[name] = handle;
    }
    // Kill it during more requests, none of them acknowledged.
    for (int i = 0; i < 50; ++i) client.send(user_.create(root, 1));
    server.kill();
  }
}

TEST_F(DirectoryServer, EndsCleanlyWhenAsked) {
  Process server = start();
  OrangefsWireClient client(port_.number());
  attributes(client, OrangefsUser::kRoot);
  server.signal(SIGTERM);
  const auto exit = server.wait();
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->ok()) << server.errors();
}

TEST_F(DirectoryServer, ASecondProcessOnTheDirectoryIsTurnedAway) {
  Process server = start();
  const std::string again =
      directory_.write("again.yaml",
                       "file_system: {name: vpfs, id: 1234}\n"
                       "servers:\n  - {alias: s0, addresses: [\"tcp://127.0.0.1:0\"]}\n"
                       "storage: {engine: directory, path: " +
                           directory_.path().string() + "/store}\n");
  Process second({program("vpfs-server"), "--config", again});
  const auto exit = second.wait();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 2);
  EXPECT_NE(second.errors().find("in use by another"), std::string::npos) << second.errors();
}

TEST_F(DirectoryServer, ABadConfigurationIsOneListOfErrors) {
  const std::string bad = directory_.write("bad.yaml",
                                           "file_system: {id: none, colour: red}\n"
                                           "servers: []\n");
  Process server({program("vpfs-server"), "--config", bad, "--check-config"});
  const auto exit = server.wait();
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 2);
  EXPECT_NE(server.errors().find("bad.yaml:1"), std::string::npos) << server.errors();
  EXPECT_NE(server.errors().find("colour"), std::string::npos) << server.errors();
}

// Simulates a full disk by a limit on the size of files: the kernel fails writes past it.
TEST_F(DirectoryServer, AFailingDiskFailsTheWriteAndLeavesTheRest) {
  Process server({"/bin/sh", "-c",
                  "ulimit -f 512; trap '' XFSZ; exec " + test::program("vpfs-server") +
                      " --config " + config_});
  ASSERT_TRUE(server.wait_for_line("ready on")) << server.errors();
  OrangefsWireClient client(port_.number());
  const orangefs::Attributes root = attributes(client, OrangefsUser::kRoot);
  const auto created = get<orangefs::CreateResponse>(client, user_.create(root, 1));
  const orangefs::Handle handle = created.metafile_handle;
  const orangefs::Attributes file = attributes(client, handle);
  ASSERT_EQ(client.call(user_.small_write(file, handle, 0, 0, "before"))->status, 0);
  EXPECT_EQ(client.call(user_.small_write(file, handle, 0, 1 << 20, "past"))->status,
            orangefs::status_from_errno(ENOSPC));
  const auto data = get<orangefs::SmallIoResponse>(client, user_.small_read(file, handle, 0, 0, 6));
  EXPECT_EQ(data.result_size, 6);
}

}  // namespace
}  // namespace vpfs::test
