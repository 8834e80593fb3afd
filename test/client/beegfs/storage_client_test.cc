#include "client/beegfs/storage_client.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/system_clock.h"
#include "client/beegfs/ops_error_code.h"
#include "test/support/run_task.h"
#include "test/support/servers/beegfs_storage.h"

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;
using beegfs::MessageType;
using beegfs::OpsError;
using test::BeegfsStorage;
using test::run_task;
using test::StorageFault;
using test::StorageRecord;
using test::StorageSettings;
using Kind = StorageFault::Kind;
using Buffer = std::vector<std::byte>;

Buffer noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Buffer bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

ChunkFile file_named(const std::string& entry, std::uint32_t user = 1000) {
  return {.target = 101, .entry = entry, .user = user};
}

class StorageClientTest : public testing::Test {
 protected:
  void mount(StorageSettings settings = {}, StorageClientOptions options = {}) {
    storage_ = std::make_unique<BeegfsStorage>(std::move(settings));
    options.server = net::Endpoint(asio::ip::address_v4::loopback(), storage_->port());
    options.retry_delay = 20ms;
    client_ = std::make_unique<StorageClient>(loop_.get_executor(), options, clock_);
  }
  ~StorageClientTest() override {
    if (client_) client_->close();
    test::drain(loop_);
  }

  void write(const ChunkFile& file, std::uint64_t offset, const Buffer& bytes) {
    const Result<void> good = run_task(loop_, client_->write(file, offset, bytes));
    ASSERT_TRUE(good) << good.error().message;
  }
  [[nodiscard]] Buffer read(const ChunkFile& file, std::uint64_t offset, std::size_t size) {
    Buffer bytes(size);
    const Result<std::uint64_t> got = run_task(loop_, client_->read(file, offset, bytes));
    EXPECT_TRUE(got) << got.error().message;
    bytes.resize(static_cast<std::size_t>(got.value_or(0)));
    return bytes;
  }
  void inject(Kind kind, MessageType type, std::int32_t value = 0, std::uint64_t bytes = 0,
              Duration delay = {}) {
    storage_->inject({.kind = kind, .type = type, .value = value, .bytes = bytes, .delay = delay});
  }
  [[nodiscard]] StorageRecord record() { return storage_->record(); }

  asio::io_context loop_;
  SystemClock clock_;
  std::unique_ptr<BeegfsStorage> storage_;
  std::unique_ptr<StorageClient> client_;
};

TEST_F(StorageClientTest, ReadsBackWhatItWroteInRequestsOfAllSizes) {
  mount();
  const ChunkFile file = file_named("1-2-3");
  Buffer expected;
  std::mt19937_64 random(7);
  for (int turn = 0; turn < 60; ++turn) {
    const std::size_t size = std::size_t{1} << random() % 21;
    const Buffer bytes = noise(size + random() % size, random());
    const std::size_t offset = random() % (4 * kMiB);
    expected.resize(std::max(expected.size(), offset + bytes.size()));
    std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
    write(file, offset, bytes);
    const std::size_t from = random() % expected.size();
    const std::size_t count = std::min<std::size_t>(bytes.size(), expected.size() - from);
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(from);
    EXPECT_EQ(read(file, from, count), Buffer(begin, begin + static_cast<std::ptrdiff_t>(count)));
  }
  EXPECT_EQ(read(file, 0, expected.size() + 1000), expected);
  EXPECT_EQ(storage_->content(101, "1-2-3"), expected);
  EXPECT_EQ(record().connections.size(), 1U);
}

TEST_F(StorageClientTest, IntroducesEachConnectionAndNamesTheUserOfEachRequest) {
  mount({.secret = 0xfeed}, {.node = 42, .secret = 0xfeed});
  ChunkFile file = file_named("A-B-C", 1001);
  file.directory_owner = 1002;
  file.directory = "job-7";
  file.owner = beegfs::FileOwner{.uid = 3, .gid = 4};
  write(file, 4096, noise(100, 1));
  (void)read(file, 5, 10);
  const auto requests = record().connections.at(0).requests;
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(requests[0].header.type, MessageType::authenticate_channel);
  EXPECT_EQ(requests[1].header.type, MessageType::set_channel_direct);
  EXPECT_EQ(requests[2].header.type, MessageType::peer_info);
  EXPECT_EQ(requests[3].header.type, MessageType::write_local_file);
  EXPECT_EQ(requests[3].header.user, 1001U);
  EXPECT_EQ(requests[3].header.target, 101U);
  EXPECT_EQ(requests[3].header.feature_flags, beegfs::kWriteHasOwner);
  EXPECT_EQ(requests[3].offset, 4096);
  EXPECT_EQ(requests[3].count, 100);
  EXPECT_EQ(requests[3].client, 42U);
  EXPECT_EQ(requests[3].file_handle, "1#A-B-C");
  EXPECT_EQ(requests[3].directory_owner, 1002U);
  EXPECT_EQ(requests[3].directory, "job-7");
  EXPECT_EQ(requests[4].header.type, MessageType::read_local_file);
  EXPECT_EQ(requests[4].header.feature_flags, 0U);
}

// A server would wait for its data without end.
TEST_F(StorageClientTest, AWriteOfNothingIsNotSent) {
  mount();
  write(file_named("f"), 7, {});
  EXPECT_EQ(record().writes, 0U);
}

TEST_F(StorageClientTest, AReadEndsWithTheFile) {
  mount();
  const ChunkFile file = file_named("short");
  EXPECT_EQ(read(file, 0, 100).size(), 0U);
  write(file, 0, noise(1000, 2));
  EXPECT_EQ(read(file, 900, 200).size(), 100U);
  const Result<std::uint64_t> dropped = run_task(loop_, client_->discard(file, 1, 1 << 20));
  EXPECT_EQ(dropped.value(), 999U);
}

TEST_F(StorageClientTest, SyncsProbesAndRemoves) {
  mount();
  const ChunkFile file = file_named("gone soon");
  write(file, 0, noise(1000, 2));
  EXPECT_TRUE(run_task(loop_, client_->probe(101)));
  EXPECT_FALSE(run_task(loop_, client_->probe(102)));
  EXPECT_TRUE(run_task(loop_, client_->sync(file)));
  EXPECT_TRUE(run_task(loop_, client_->remove(file)));
  EXPECT_EQ(read(file, 0, 100).size(), 0U);
}

TEST_F(StorageClientTest, ABusyPoolServesWaitersInOrder) {
  mount({}, {.connections = 1});
  const ChunkFile file = file_named("queue");
  write(file, 0, noise(1000, 2));
  inject(Kind::delay, MessageType::read_local_file, 0, 0, 30ms);
  std::vector<int> ended;
  std::vector<Buffer> buffers(6, Buffer(100));
  for (int i = 0; i < 6; ++i) {
    Buffer& buffer = buffers[static_cast<std::size_t>(i)];
    const auto note = [&ended, i](const std::exception_ptr&, const Result<std::uint64_t>& got) {
      EXPECT_TRUE(got);
      ended.push_back(i);
    };
    asio::co_spawn(loop_, client_->read(file, static_cast<std::uint64_t>(i), buffer), note);
  }
  while (client_->waiting() < 5) loop_.run_one();
  while (ended.size() < 6) loop_.run_one();
  EXPECT_EQ(ended, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(record().peak_outstanding, 1U);
}

TEST_F(StorageClientTest, OpensAsManyConnectionsAsRequestsAreUnderWayUpToItsLimit) {
  mount({}, {.connections = 3});
  const ChunkFile file = file_named("wide");
  write(file, 0, noise(1000, 2));
  for (int i = 0; i < 8; ++i) inject(Kind::delay, MessageType::read_local_file, 0, 0, 20ms);
  std::vector<Buffer> buffers(8, Buffer(100));
  int ended = 0;
  for (Buffer& each : buffers) {
    const auto note = [&ended](const std::exception_ptr&, const Result<std::uint64_t>&) {
      ++ended;
    };
    asio::co_spawn(loop_, client_->read(file, 0, each), note);
  }
  while (ended < 8) loop_.run_one();
  EXPECT_EQ(record().connections.size(), 3U);
  EXPECT_EQ(record().peak_outstanding, 3U);
}

TEST_F(StorageClientTest, ErrorsOfTheServerReachTheCaller) {
  mount();
  const ChunkFile file = file_named("full");
  inject(Kind::error, MessageType::write_local_file, 14);
  const Buffer bytes = noise(200000, 3);
  const Result<void> full = run_task(loop_, client_->write(file, 0, bytes));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, error_code_of(OpsError::no_space));
  EXPECT_EQ(full.error().code, std::errc::no_space_on_device);

  ChunkFile elsewhere = file;
  elsewhere.target = 999;
  Buffer into(10);
  const Result<std::uint64_t> unknown = run_task(loop_, client_->read(elsewhere, 0, into));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, error_code_of(OpsError::unknown_target));
  // The connection never lost its framing.
  EXPECT_EQ(record().connections.size(), 1U);
  EXPECT_EQ(client_->counters().repeats, 0U);
}

TEST_F(StorageClientTest, ARealErrorAfterPartOfAReadIsTheOutcome) {
  mount();
  const ChunkFile file = file_named("bad disk");
  write(file, 0, noise(100000, 4));
  inject(Kind::error, MessageType::read_local_file, 1, 50000);
  Buffer into(100000);
  const Result<std::uint64_t> got = run_task(loop_, client_->read(file, 0, into));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, error_code_of(OpsError::internal));
}

TEST_F(StorageClientTest, RepeatsAWriteForAsLongAsTheServerSaysTryAgain) {
  mount();
  const ChunkFile file = file_named("patient");
  storage_->inject(
      {.kind = Kind::error, .type = MessageType::write_local_file, .value = 22, .times = 3});
  const Buffer bytes = noise(5000, 5);
  write(file, 0, bytes);
  EXPECT_EQ(client_->counters().repeats, 3U);
  EXPECT_EQ(client_->counters().opened, 1U);
  EXPECT_EQ(storage_->content(101, "patient"), bytes);
}

TEST_F(StorageClientTest, RepeatsAReadAfterACommunicationErrorOnTheSameConnection) {
  mount();
  const ChunkFile file = file_named("far");
  const Buffer bytes = noise(5000, 6);
  write(file, 0, bytes);
  inject(Kind::error, MessageType::read_local_file, 3);
  inject(Kind::error, MessageType::read_local_file, 3);
  EXPECT_EQ(read(file, 0, 5000), bytes);
  EXPECT_EQ(client_->counters().repeats, 2U);
  EXPECT_EQ(client_->counters().opened, 1U);
}

struct Mishap {
  const char* name;
  Kind kind;
  MessageType type;
  std::uint64_t bytes;
};

class StorageMishapTest : public StorageClientTest, public testing::WithParamInterface<Mishap> {};

// The client recovers: it retries the request on a new connection.
TEST_P(StorageMishapTest, CostsAConnectionAndNothingElse) {
  mount({}, {.timeout = 300ms});
  const ChunkFile file = file_named("mishap");
  const Buffer before = noise(300000, 7);
  write(file, 0, before);
  inject(GetParam().kind, GetParam().type, 0, GetParam().bytes);
  if (GetParam().type == MessageType::read_local_file) {
    EXPECT_EQ(read(file, 0, 300000), before);
  } else {
    const Buffer after = noise(300000, 8);
    write(file, 0, after);
    EXPECT_EQ(storage_->content(101, "mishap"), after);
  }
  EXPECT_EQ(client_->counters().repeats, 1U);
  EXPECT_EQ(client_->counters().opened, 2U);
  EXPECT_EQ(client_->counters().lost, 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Each, StorageMishapTest,
    testing::Values(Mishap{"ReadIsNotAnswered", Kind::silence, MessageType::read_local_file, 0},
                    Mishap{"WriteIsNotAnswered", Kind::silence, MessageType::write_local_file, 0},
                    Mishap{"ReadIsCutAtOnce", Kind::cut_answer, MessageType::read_local_file, 0},
                    Mishap{"ReadIsCut", Kind::cut_answer, MessageType::read_local_file, 150000},
                    Mishap{"WriteIsCutAtOnce", Kind::cut_data, MessageType::write_local_file, 0},
                    Mishap{"WriteIsCut", Kind::cut_data, MessageType::write_local_file, 150000},
                    Mishap{"ReadHasAMessage", Kind::wrong_type, MessageType::read_local_file, 0},
                    Mishap{"WriteHasAnotherMessage", Kind::wrong_type,
                           MessageType::write_local_file, 0},
                    Mishap{"ReadIsTooLong", Kind::too_much, MessageType::read_local_file, 1},
                    Mishap{"WriteIsTooLong", Kind::too_much, MessageType::write_local_file, 1}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(StorageClientTest, AHalfLengthWordIsOnlySlow) {
  mount();
  const ChunkFile file = file_named("slow");
  const Buffer bytes = noise(5000, 9);
  write(file, 0, bytes);
  inject(Kind::half_word, MessageType::read_local_file, 0, 3, 20ms);
  EXPECT_EQ(read(file, 0, 5000), bytes);
  EXPECT_EQ(client_->counters().repeats, 0U);
}

TEST_F(StorageClientTest, ALostConnectionTakesTheIdleOnesWithIt) {
  mount({}, {.connections = 3});
  const ChunkFile file = file_named("pool");
  write(file, 0, noise(1000, 2));
  for (int i = 0; i < 3; ++i) inject(Kind::delay, MessageType::read_local_file, 0, 0, 20ms);
  std::vector<Buffer> buffers(3, Buffer(100));
  int ended = 0;
  for (Buffer& each : buffers) {
    const auto note = [&ended](const std::exception_ptr&, const Result<std::uint64_t>&) {
      ++ended;
    };
    asio::co_spawn(loop_, client_->read(file, 0, each), note);
  }
  while (ended < 3) loop_.run_one();
  EXPECT_EQ(client_->counters().opened, 3U);
  inject(Kind::cut_answer, MessageType::read_local_file);
  EXPECT_EQ(read(file, 0, 100).size(), 100U);
  EXPECT_EQ(client_->counters().lost, 3U);
  EXPECT_EQ(client_->counters().opened, 4U);
}

TEST_F(StorageClientTest, WaitsForAServerThatComesBackAndGivesUpOnOneThatDoesNot) {
  mount({}, {.give_up = 200ms});
  const ChunkFile file = file_named("restart");
  const Buffer bytes = noise(1000, 2);
  write(file, 0, bytes);
  const std::uint16_t port = storage_->port();
  storage_ = nullptr;
  asio::steady_timer timer(loop_, 50ms);
  timer.async_wait([&](std::error_code) {
    storage_ = std::make_unique<BeegfsStorage>(StorageSettings{.port = port});
  });
  write(file, 0, bytes);
  EXPECT_EQ(storage_->content(101, "restart"), bytes);
  EXPECT_GE(client_->counters().repeats, 2U);

  storage_ = nullptr;
  const Result<void> lost = run_task(loop_, client_->write(file, 0, bytes));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, error_code_of(OpsError::communication));
  EXPECT_NE(lost.error().message.find("127.0.0.1:" + std::to_string(port)), std::string::npos)
      << lost.error().message;
}

TEST_F(StorageClientTest, HowLongAttemptsTakeDoesNotCount) {
  mount({}, {.connections = 1, .timeout = 60ms, .give_up = 100ms});
  const ChunkFile file = file_named("slow");
  write(file, 0, noise(1000, 2));
  for (int i = 0; i < 4; ++i) inject(Kind::silence, MessageType::read_local_file);
  EXPECT_EQ(read(file, 0, 1000), noise(1000, 2));
  EXPECT_EQ(client_->counters().repeats, 4U);
}

TEST_F(StorageClientTest, CloseEndsRequestsUnderWayAndWaiting) {
  mount({}, {.connections = 1});
  const ChunkFile file = file_named("closing");
  inject(Kind::silence, MessageType::read_local_file);
  std::vector<Buffer> buffers(2, Buffer(100));
  int failed = 0;
  for (Buffer& each : buffers) {
    const auto note = [&failed](const std::exception_ptr&, const Result<std::uint64_t>& got) {
      if (!got) ++failed;
    };
    asio::co_spawn(loop_, client_->read(file, 0, each), note);
  }
  while (client_->waiting() < 1) loop_.run_one();
  client_->close();
  while (failed < 2 && loop_.run_one() > 0) {
  }
  EXPECT_EQ(failed, 2);
}

}  // namespace
}  // namespace vpfs::client
