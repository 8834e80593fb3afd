// Whole servers on loopback, driven message by message.

#include "dataserver/orangefs/server.h"

#include <cerrno>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/dataserver/orangefs/server_session.h"

namespace vpfs::dataserver {
namespace {

using orangefs::Op;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(Server, TellsEveryClientTheSameConfiguration) {
  const RunningFileSystem servers(2);
  Session session(servers, 2);
  const auto request = session.user.request(orangefs::EmptyRequest{.op = Op::getconfig});
  const auto first = session.get<orangefs::GetconfigResponse>(request, 0);
  const auto second = session.get<orangefs::GetconfigResponse>(request, 1);
  EXPECT_EQ(first.config, second.config);
  EXPECT_EQ(first.size, first.config.size() + 1);
  EXPECT_THAT(first.config, HasSubstr(std::to_string(servers.port(1))));
}

TEST(Server, AnswersWhatPingAsks) {
  const RunningFileSystem servers(2);
  Session session(servers, 2);
  orangefs::MgmtSetparamRequest check{.fs_id = RunningFileSystem::kId, .parameter = 2};
  check.number = RunningFileSystem::kId;
  orangefs::MgmtSetparamRequest root{.fs_id = RunningFileSystem::kId, .parameter = 3};
  root.number = OrangefsUser::kRoot;
  for (std::uint32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(
        session.ask(session.user.request(orangefs::EmptyRequest{.op = Op::mgmt_noop}), server), 0);
    EXPECT_EQ(session.ask(session.user.request(check), server), 0);
    EXPECT_EQ(session.ask(session.user.request(root), server), server == 0 ? 0 : status(ENOENT));
  }
}

TEST(Server, CreatesFindsAndRemovesAFile) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const auto found =
      session.get<orangefs::LookupPathResponse>(session.user.lookup(OrangefsUser::kRoot, "a"));
  EXPECT_THAT(found.handles, ElementsAre(file));
  const orangefs::Attributes attributes = session.attributes(file);
  EXPECT_EQ(attributes.type, orangefs::ObjectType::metafile);
  EXPECT_NE(attributes.mask & orangefs::kAttrMetaUnstuffed, 0U);
  EXPECT_EQ(attributes.capability.issuer, "S:s0");
  EXPECT_THAT(attributes.capability.handles, ElementsAre(file, attributes.datafiles[0]));

  const orangefs::Attributes root = session.attributes(OrangefsUser::kRoot);
  const auto removed = session.get<orangefs::HandleResponse>(session.user.request(
      orangefs::RmdirentRequest{.name = "a",
                                .dirdata_handle = root.distributed.dirdata_handles[0],
                                .fs_id = RunningFileSystem::kId},
      root.capability));
  EXPECT_EQ(removed.handle, file);
  const orangefs::RemoveRequest remove{
      .handle = file, .fs_id = RunningFileSystem::kId, .credential = session.user.credential()};
  EXPECT_EQ(session.ask(session.user.request(remove, root.capability, OrangefsUser::kRoot)), 0);
  EXPECT_EQ(session.ask(session.user.getattr(file)), status(ENOENT));
  EXPECT_EQ(session.ask(session.user.lookup(OrangefsUser::kRoot, "a")), status(ENOENT));
}

TEST(Server, LooksUpAsFarAsItCan) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Attributes root = session.attributes(OrangefsUser::kRoot);
  orangefs::MkdirRequest mkdir;
  mkdir.fs_id = RunningFileSystem::kId;
  mkdir.credential = session.user.credential();
  mkdir.attributes.type = orangefs::ObjectType::directory;
  mkdir.attributes.permissions = 0755;
  mkdir.attributes.mask = orangefs::kAttrCommonAll | orangefs::kAttrDirHint;
  const auto made =
      session.get<orangefs::MkdirResponse>(session.user.request(mkdir, root.capability));
  EXPECT_EQ(session.ask(session.user.link(root, OrangefsUser::kRoot, "d", made.handle)), 0);
  const auto found =
      session.get<orangefs::LookupPathResponse>(session.user.lookup(OrangefsUser::kRoot, "d/nope"));
  EXPECT_THAT(found.handles, ElementsAre(made.handle));
  EXPECT_THAT(found.attributes, SizeIs(1));
  EXPECT_EQ(session.ask(session.user.lookup(made.handle, "nope")), status(ENOENT));
}

TEST(Server, MovesAFlowBothWaysInMessagesOfTheAgreedSize) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const std::string data = pattern(1'000'001);
  std::int64_t completed = 0;
  EXPECT_EQ(
      write_flow(session.at(0),
                 session.user.io(attributes, file, 0, orangefs::IoType::write, 100, 1'000'001),
                 data, &completed),
      0);
  EXPECT_EQ(completed, 1'000'001);
  EXPECT_EQ(read_flow(session.at(0),
                      session.user.io(attributes, file, 0, orangefs::IoType::read, 0, 5'000'000),
                      1'000'101),
            std::string(100, '\0') + data);
  EXPECT_EQ(
      read_flow(session.at(0),
                session.user.io(attributes, file, 0, orangefs::IoType::read, 2'000'000, 100), 0),
      "");
  EXPECT_EQ(session.ask(session.user.request(orangefs::EmptyRequest{.op = Op::mgmt_noop})), 0);
}

TEST(Server, SmallRequestsCarryTheirDataThemselves) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const auto written = session.get<orangefs::SmallIoResponse>(
      session.user.small_write(attributes, file, 0, 5, "hello"));
  EXPECT_EQ(written.result_size, 5);
  EXPECT_EQ(written.bstream_size, 0);
  const auto read =
      session.get<orangefs::SmallIoResponse>(session.user.small_read(attributes, file, 0, 3, 100));
  EXPECT_EQ(read.bstream_size, 10);
  EXPECT_EQ(read.result_size, 7);
  EXPECT_EQ(text_of(read.data), std::string("\0\0hello", 7));
}

TEST(Server, StripesAFileOverItsServers) {
  const RunningFileSystem servers(2);
  Session session(servers, 2);
  for (const std::uint32_t meta : {0U, 1U}) {
    const orangefs::Handle file = session.create("f" + std::to_string(meta), 2, meta);
    const orangefs::Attributes attributes = session.attributes(file);
    ASSERT_EQ(attributes.datafiles.size(), 2U);
    const std::string data = pattern(5 * 65536 + 10);
    // The first datafile has strips 0, 2 and 4; the second has 1, 3 and the last ten bytes.
    const std::vector<std::string> parts = {
        data.substr(0, 65536) + data.substr(2 * 65536, 65536) + data.substr(4 * 65536, 65536),
        data.substr(65536, 65536) + data.substr(3 * 65536, 65536) + data.substr(5 * 65536)};
    const auto size = static_cast<std::int64_t>(data.size());
    for (std::uint32_t nr = 0; nr < 2; ++nr) {
      OrangefsWireClient& client = session.of(attributes.datafiles[nr]);
      const auto write = session.user.io(attributes, file, nr, orangefs::IoType::write, 0, size);
      EXPECT_EQ(write_flow(client, write, parts[nr]), 0);
      const auto read = session.user.io(attributes, file, nr, orangefs::IoType::read, 0, 10 * size);
      EXPECT_EQ(read_flow(client, read, parts[nr].size()), parts[nr]);
    }
    // Any server can tell all sizes, because it asks the other.
    for (const std::uint32_t asked : {0U, 1U}) {
      const auto sizes = session.get<orangefs::TreeGetFileSizeResponse>(
          session.user.request(
              orangefs::TreeGetFileSizeRequest{.fs_id = RunningFileSystem::kId,
                                               .credential = session.user.credential(),
                                               .handles = attributes.datafiles}),
          asked);
      EXPECT_THAT(sizes.sizes, ElementsAre(3 * 65536, 2 * 65536 + 10));
      EXPECT_THAT(sizes.errors, ElementsAre(0, 0));
    }
    const orangefs::Attributes root = session.attributes(OrangefsUser::kRoot);
    const auto removed = session.get<orangefs::TreeStatusResponse>(
        session.user.request(orangefs::TreeRemoveRequest{.fs_id = RunningFileSystem::kId,
                                                         .credential = session.user.credential(),
                                                         .handles = attributes.datafiles},
                             root.capability, OrangefsUser::kRoot));
    EXPECT_THAT(removed.statuses, ElementsAre(0, 0));
    EXPECT_EQ(read_flow(session.of(attributes.datafiles[1]),
                        session.user.io(attributes, file, 1, orangefs::IoType::read, 0, size), 0),
              "refused")
        << "it is not an empty one";
  }
}

TEST(Server, OperationsOfOneConnectionRunSideBySide) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  OrangefsWireClient& client = session.at(0);
  const std::string data(100'000, 'x');
  const auto bytes = std::as_bytes(std::span(data));
  const orangefs::Tag first =
      client.send(session.user.io(attributes, file, 0, orangefs::IoType::write, 0, 200'000));
  ASSERT_TRUE(client.receive_response(first));
  client.send_data(first, bytes);
  // The first write still waits for its second half.
  const orangefs::Tag second =
      client.send(session.user.io(attributes, file, 0, orangefs::IoType::write, 500'000, 100'000));
  ASSERT_TRUE(client.receive_response(second));
  client.send_data(second, bytes);
  EXPECT_EQ(client.receive_response(second)->status, 0);
  EXPECT_EQ(session.ask(session.user.request(orangefs::EmptyRequest{.op = Op::mgmt_noop})), 0);
  client.send_data(first, bytes);
  EXPECT_EQ(client.receive_response(first)->status, 0);
}

TEST(Server, TruncatesStatsAndFlushes) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const orangefs::Handle datafile = attributes.datafiles[0];
  const orangefs::TruncateRequest truncate{
      .handle = datafile, .fs_id = RunningFileSystem::kId, .size = 1234};
  EXPECT_EQ(session.ask(session.user.request(truncate)), status(EACCES));
  EXPECT_EQ(session.ask(session.user.request(truncate, attributes.capability)), 0);
  EXPECT_EQ(session.attributes(datafile).size, 1234);
  for (const orangefs::Handle handle : {file, datafile}) {
    EXPECT_EQ(session.ask(session.user.request(
                  orangefs::FlushRequest{.handle = handle, .fs_id = RunningFileSystem::kId})),
              0);
  }
  const auto space = session.get<orangefs::StatfsResponse>(
      session.user.request(orangefs::StatfsRequest{.fs_id = RunningFileSystem::kId}));
  EXPECT_EQ(space.bytes_total, 4 * kGiB);
  EXPECT_GT(space.handles_available, 0U);
}

TEST(Server, ListsNamesAndTheirAttributes) {
  const RunningFileSystem servers(1);
  Session session(servers);
  std::map<std::string, orangefs::Handle> made;
  for (const std::string name : {"b", "a", "c"}) made[name] = session.create(name, 1);
  const orangefs::Attributes root = session.attributes(OrangefsUser::kRoot);
  const orangefs::Handle dirdata = root.distributed.dirdata_handles[0];
  EXPECT_EQ(session.attributes(dirdata).directory.dirent_count, 3);
  orangefs::ReaddirRequest readdir{
      .handle = dirdata, .fs_id = RunningFileSystem::kId, .dirent_limit = 10, .token = 0x7ffffffe};
  EXPECT_EQ(session.ask(session.user.request(readdir)), status(EACCES));
  const auto list =
      session.get<orangefs::ReaddirResponse>(session.user.request(readdir, root.capability));
  ASSERT_THAT(list.entries, SizeIs(3));
  orangefs::ListattrRequest listattr{.fs_id = RunningFileSystem::kId, .attribute_mask = 0x3c2c7f};
  for (const auto& entry : list.entries) {
    EXPECT_EQ(made[entry.name], entry.handle);
    listattr.handles.push_back(entry.handle);
  }
  listattr.handles.push_back(4);
  const auto attributes = session.get<orangefs::ListattrResponse>(session.user.request(listattr));
  EXPECT_THAT(attributes.errors, ElementsAre(0, 0, 0, status(ENOENT)));
  EXPECT_EQ(attributes.attributes[0].mask & orangefs::kAttrCapability, 0U);
}

TEST(Server, KeepsExtendedAttributes) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const std::string key("user.a\0", 7);
  const orangefs::SeteattrRequest set{
      .handle = file, .fs_id = RunningFileSystem::kId, .keys = {key}, .values = {"value"}};
  EXPECT_EQ(session.ask(session.user.request(set)), status(EACCES));
  EXPECT_EQ(session.ask(session.user.request(set, attributes.capability)), 0);
  orangefs::GeteattrRequest get{
      .handle = file, .fs_id = RunningFileSystem::kId, .keys = {key}, .value_sizes = {100}};
  EXPECT_THAT(session.get<orangefs::EattrResponse>(session.user.request(get)).values,
              ElementsAre("value"));
  get.value_sizes = {2};
  EXPECT_EQ(session.ask(session.user.request(get)), status(ERANGE));
  get.keys = {"user.b"};
  EXPECT_EQ(session.ask(session.user.request(get)), status(ENOENT));
  orangefs::ListeattrRequest list{.handle = file,
                                  .fs_id = RunningFileSystem::kId,
                                  .token = 0x7ffffffe,
                                  .key_sizes = {256, 256}};
  EXPECT_THAT(session.get<orangefs::ListeattrResponse>(session.user.request(list)).keys,
              ElementsAre(key));
  const orangefs::DeleattrRequest remove{
      .handle = file, .fs_id = RunningFileSystem::kId, .key = key};
  EXPECT_EQ(session.ask(session.user.request(remove, attributes.capability)), 0);
  EXPECT_EQ(session.ask(session.user.request(remove, attributes.capability)), status(ENOENT));
}

TEST(Server, MakesSymbolicLinksInTwoSteps) {
  const RunningFileSystem servers(1);
  Session session(servers, 1, 1000);
  const orangefs::Attributes root = session.attributes(OrangefsUser::kRoot);
  const auto made = session.get<orangefs::BatchCreateResponse>(session.user.request(
      orangefs::BatchCreateRequest{.fs_id = RunningFileSystem::kId,
                                   .object_type = orangefs::ObjectType::symlink,
                                   .count = 1},
      root.capability));
  ASSERT_THAT(made.handles, SizeIs(1));
  orangefs::SetattrRequest set{.handle = made.handles[0], .fs_id = RunningFileSystem::kId};
  set.credential = session.user.credential();
  set.attributes.type = orangefs::ObjectType::symlink;
  set.attributes.mask = orangefs::kAttrCommonAll | orangefs::kAttrSymlinkTarget;
  set.attributes.uid = 1000;
  set.attributes.symlink_target = "a";
  set.attributes.symlink_target_length = 2;
  const auto request = session.user.request(set, session.attributes(set.handle).capability);
  EXPECT_EQ(session.ask(request), 0);
  EXPECT_EQ(session.attributes(set.handle).symlink_target, "a");
  EXPECT_EQ(session.attributes(set.handle).uid, 1000U);
}

TEST(Server, CapabilitiesSayWhatAUserMayDo) {
  const RunningFileSystem servers(1);
  Session owner(servers, 1, 1000);
  const orangefs::Handle file = owner.create("a", 1);
  EXPECT_EQ(owner.ask(owner.user.small_write(owner.attributes(file), file, 0, 0, "x")), 0);
  Session other(servers, 1, 1001);
  const orangefs::Attributes seen = other.attributes(file);
  EXPECT_EQ(seen.capability.op_mask, std::uint32_t{orangefs::kCapRead});
  EXPECT_EQ(other.ask(other.user.small_write(seen, file, 0, 0, "y")), status(EACCES));
  EXPECT_EQ(other.ask(other.user.small_read(seen, file, 0, 0, 1)), 0);
  orangefs::SetattrRequest chmod{.handle = file, .fs_id = RunningFileSystem::kId};
  chmod.credential = other.user.credential();
  chmod.attributes.mask = orangefs::kAttrPermissions;
  EXPECT_EQ(other.ask(other.user.request(chmod, seen.capability)), status(EACCES));
  chmod.credential = owner.user.credential();
  EXPECT_EQ(owner.ask(owner.user.request(chmod, owner.attributes(file).capability)), 0);
  EXPECT_EQ(other.attributes(file).capability.op_mask, 0U);
  // Only root may give a file away.
  chmod.attributes.mask = orangefs::kAttrUid;
  chmod.attributes.uid = 1001;
  EXPECT_EQ(owner.ask(owner.user.request(chmod, owner.attributes(file).capability)), status(EPERM));
  Session root(servers);
  EXPECT_EQ(root.attributes(file).capability.op_mask, 0xffffffafU);
  EXPECT_EQ(root.attributes(OrangefsUser::kRoot).capability.op_mask, 0xffffffffU);
}

TEST(Server, DataNeedACapabilityThatCoversTheFile) {
  const RunningFileSystem servers(1);
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  orangefs::Attributes attributes = session.attributes(file);
  auto without_hint = session.user.small_read(attributes, file, 0, 0, 1);
  without_hint.hints.clear();
  EXPECT_EQ(session.ask(without_hint), status(EINVAL));
  EXPECT_EQ(session.ask(session.user.small_read(attributes, file + 1, 0, 0, 1)), status(EACCES));
  attributes.datafiles[0] = file;
  EXPECT_EQ(session.ask(session.user.small_read(attributes, file, 0, 0, 1)), status(ENOENT));
}

TEST(Server, RefusesUnsupportedOperations) {
  const RunningFileSystem servers(1);
  Session session(servers);
  EXPECT_EQ(session.ask(session.user.request(orangefs::MgmtEventMonRequest{.event_count = 1})),
            status(ENOSYS));
  EXPECT_EQ(session.ask(session.user.request(orangefs::StatfsRequest{.fs_id = 99})),
            status(ENODEV));
  // The datatype refers to a missing element.
  const orangefs::Handle file = session.create("a", 1);
  auto request = session.user.io(session.attributes(file), file, 0, orangefs::IoType::read, 0, 100);
  auto& io = std::get<orangefs::IoRequestBody>(request.body);
  io.file_request.elements[0].ereq = 7;
  EXPECT_EQ(session.ask(request), status(EOPNOTSUPP));
  io.file_request = orangefs::FileRequest::contiguous_bytes();
  io.distribution = orangefs::VarStrip{.strips = "nonsense"};
  EXPECT_EQ(session.ask(request), status(EOPNOTSUPP));
}

TEST(Server, AFullServerFailsTheWriteAtItsEndAndGoesOn) {
  const RunningFileSystem servers(1, [](ServerConfig& config) { config.capacity = Bytes{kMiB}; });
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const std::string data = pattern(3'000'000);
  EXPECT_EQ(
      write_flow(session.at(0),
                 session.user.io(attributes, file, 0, orangefs::IoType::write, 0, 3'000'000), data),
      status(ENOSPC));
  EXPECT_EQ(read_flow(session.at(0),
                      session.user.io(attributes, file, 0, orangefs::IoType::read, 0, 1000), 1000),
            data.substr(0, 1000));
  EXPECT_EQ(session.ask(session.user.small_write(attributes, file, 0, 4'000'000, "x")),
            status(ENOSPC));
}

// No name would lead to it, and its space would be lost.
TEST(Server, AWriteUnderWayDoesNotBringARemovedDatafileBack) {
  const RunningFileSystem servers(1, [](ServerConfig& config) { config.capacity = Bytes{kMiB}; });
  Session session(servers);
  Session other(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const std::string data = pattern(900'000);
  const auto bytes = std::as_bytes(std::span(data));
  OrangefsWireClient& client = session.at(0);
  const orangefs::Tag tag =
      client.send(session.user.io(attributes, file, 0, orangefs::IoType::write, 0, 900'000));
  ASSERT_EQ(client.receive_response(tag).value().status, 0);
  client.send_data(tag, bytes.first(262'144));
  // Once this is answered, the data were taken.
  EXPECT_EQ(session.ask(session.user.request(orangefs::EmptyRequest{.op = Op::mgmt_noop})), 0);
  const orangefs::Attributes root = other.attributes(OrangefsUser::kRoot);
  for (const orangefs::Handle handle : {attributes.datafiles[0], file}) {
    const orangefs::RemoveRequest remove{
        .handle = handle, .fs_id = RunningFileSystem::kId, .credential = other.user.credential()};
    EXPECT_EQ(other.ask(other.user.request(remove, root.capability, OrangefsUser::kRoot)), 0);
  }
  for (std::size_t done = 262'144; done < bytes.size(); done += 262'144) {
    client.send_data(tag, bytes.subspan(done, std::min<std::size_t>(262'144, bytes.size() - done)));
  }
  EXPECT_EQ(client.receive_response(tag).value().status, status(ENOENT));
  const orangefs::Handle next = session.create("b", 1);
  EXPECT_EQ(write_flow(client,
                       session.user.io(session.attributes(next), next, 0, orangefs::IoType::write,
                                       0, 900'000),
                       data),
            0)
      << "all space is free again";
}

TEST(Server, TheModelledDeviceSetsThePace) {
  const RunningFileSystem servers(1, [](ServerConfig& config) {
    config.device = DeviceSettings{
        .bandwidth = BytesPerSecond{10 * kMiB}, .per_request = Duration::zero(), .parallelism = 4};
  });
  Session session(servers);
  const orangefs::Handle file = session.create("a", 1);
  const orangefs::Attributes attributes = session.attributes(file);
  const SystemClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(write_flow(session.at(0),
                       session.user.io(attributes, file, 0, orangefs::IoType::write, 0, 1 << 20),
                       pattern(1 << 20)),
            0);
  EXPECT_GE(clock.now() - start, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace vpfs::dataserver
