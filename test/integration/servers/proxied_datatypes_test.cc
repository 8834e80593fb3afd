// Reads and writes datatypes with holes, over every distribution, through vpfs-proxy to
// vpfs-server. The bytes are right, flow buffers are full, and the slot comes back with the last
// byte.

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/protocols/orangefs/striping_model.h"
#include "test/support/file_requests.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/support/proxy_process.h"
#include "test/support/servers/orangefs_user.h"

namespace vpfs::test {
namespace {

using orangefs::IoType;
using orangefs::test::random_striping;
using orangefs::test::StripingModel;

using Bytes = std::vector<std::byte>;

constexpr orangefs::FsId kFileSystem = 1234;

// One data server's part of a request.
struct Part {
  DatatypeBuilder type;
  StripingModel striping;
  std::uint32_t server = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;

  // The datafile offsets of its bytes, in order.
  [[nodiscard]] std::vector<std::int64_t> places() const {
    const std::vector<std::int64_t> logical = stream_bytes(type, offset, size);
    const std::int64_t end = logical.empty() ? 0 : *std::ranges::max_element(logical) + 1;
    const std::vector<std::int64_t> offsets = striping.offsets(server, end);
    std::vector<std::int64_t> found;
    for (const std::int64_t at : logical) {
      if (striping.has(server, at)) found.push_back(offsets[static_cast<std::size_t>(at)]);
    }
    return found;
  }
};

Bytes random_data(std::mt19937_64& random, std::size_t size) {
  Bytes data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

// A file with one datafile on a server behind a proxy. Requests claim that it is one part of a
// larger striping; data servers believe them.
class ProxiedDatatypes : public testing::TestWithParam<std::size_t> {
 protected:
  // With depth 1, nothing else is served until the slot comes back.
  ProxiedDatatypes() : proxy_({.upstream = server_port_.number(), .depth = 1}) {
    const std::string config = directory_.write(
        "server.yaml", fmt::format("file_system: {{name: vpfs, id: {}, flow_buffer_size: {}}}\n"
                                   "servers: [{{alias: s0, addresses: ['tcp://{}']}}]\n"
                                   "storage: {{engine: memory}}\n",
                                   kFileSystem, GetParam(), server_port_.address()));
    server_.emplace(std::vector<std::string>{program("vpfs-server"), "--config", config});
  }

  void SetUp() override {
    ASSERT_TRUE(server_->wait_for_line("ready on")) << server_->errors();
    client_.emplace(proxy_.port());
    const auto root =
        get<orangefs::AttributesResponse>(user_.getattr(OrangefsUser::kRoot)).attributes;
    file_ = get<orangefs::CreateResponse>(user_.create(root, 1)).metafile_handle;
    ASSERT_EQ(client_->call(user_.link(root, OrangefsUser::kRoot, "a", file_))->status, 0);
    attributes_ = get<orangefs::AttributesResponse>(user_.getattr(file_)).attributes;
  }

  template <typename Body>
  Body get(const orangefs::Request& request) {
    auto response = client_->call(request);
    const Body* body = response ? std::get_if<Body>(&response->body) : nullptr;
    EXPECT_NE(body, nullptr);
    return body == nullptr ? Body{} : *body;
  }

  [[nodiscard]] orangefs::Request request(const Part& part, IoType type) const {
    orangefs::Request request = user_.io(attributes_, file_, 0, type, part.offset, part.size);
    fill(std::get<orangefs::IoRequestBody>(request.body), part);
    return request;
  }
  template <typename Body>
  static void fill(Body& body, const Part& part) {
    body.server_nr = part.server;
    body.server_ct = part.striping.servers;
    body.distribution = part.striping.distribution;
    body.file_request = part.type.request();
  }
  [[nodiscard]] orangefs::Request dense(IoType type, std::int64_t size) const {
    return user_.io(attributes_, file_, 0, type, 0, size);
  }

  void write(const orangefs::Request& request, std::span<const std::byte> data) {
    const orangefs::Tag tag = client_->send(request);
    const auto ready = client_->receive_response(tag);
    ASSERT_TRUE(ready && ready->status == 0);
    for (std::size_t done = 0; done < data.size(); done += GetParam()) {
      client_->send_data(tag, data.subspan(done, std::min(GetParam(), data.size() - done)));
    }
    const auto end = client_->receive_response(tag);
    ASSERT_TRUE(end && end->status == 0);
    EXPECT_EQ(std::get<orangefs::WriteCompletionResponse>(end->body).total_completed,
              static_cast<std::int64_t>(data.size()));
  }

  void expect_read(const orangefs::Request& request, const Bytes& wanted) {
    const orangefs::Tag tag = client_->send(request);
    const auto ready = client_->receive_response(tag);
    ASSERT_TRUE(ready && ready->status == 0);
    Bytes data;
    while (data.size() < wanted.size()) {
      const auto message = client_->receive();
      ASSERT_TRUE(message && message->header.tag == tag);
      ASSERT_EQ(message->payload.size(), std::min(GetParam(), wanted.size() - data.size()));
      data.insert(data.end(), message->payload.begin(), message->payload.end());
    }
    EXPECT_TRUE(data == wanted);
  }

  // Replaces the datafile's contents.
  void overwrite(const Bytes& contents) {
    const auto size = static_cast<std::int64_t>(contents.size());
    ASSERT_EQ(client_
                  ->call(user_.request(
                      orangefs::TruncateRequest{
                          .handle = attributes_.datafiles[0], .fs_id = kFileSystem, .size = size},
                      attributes_.capability, file_))
                  ->status,
              0);
    if (size > 0) write(dense(IoType::write, size), contents);
  }

  void expect_slots_are_back() {
    EXPECT_TRUE(proxy_.wait_for_outstanding(0));
    EXPECT_EQ(proxy_.status()["counters"]["slots_given_up"], 0);
  }

  ReservedPort server_port_;
  TemporaryDirectory directory_;
  ProxyProcess proxy_;
  std::optional<Process> server_;
  std::optional<OrangefsWireClient> client_;
  OrangefsUser user_{kFileSystem};
  orangefs::Handle file_ = 0;
  orangefs::Attributes attributes_;
};

// Some KiB in blocks of 1 to 9000 bytes, with holes, in order.
DatatypeBuilder blocks(std::mt19937_64& random) {
  const auto length = static_cast<std::int32_t>(1 + random() % 9000);
  const auto hole = static_cast<std::int64_t>(random() % 9000);
  const DatatypeBuilder block = DatatypeBuilder().contiguous(length);
  switch (random() % 3) {
    case 0:
      return block.hvector(5, 1, length + hole);
    case 1:
      return block.hindexed({1, 3, 0, 2}, {hole, 2 * hole + length, 90000, 100000});
    default:
      return block.hvector(3, 1, length + hole).resized(0, 3 * (length + hole));
  }
}

Part random_part(std::mt19937_64& random) {
  Part part{.type = blocks(random), .striping = random_striping(random)};
  // Makes strips of some KiB; they were some bytes.
  for (auto& strip : part.striping.period) strip.size *= 1000;
  if (auto* stripe = std::get_if<orangefs::SimpleStripe>(&part.striping.distribution)) {
    stripe->strip_size *= 1000;
  } else if (auto* two = std::get_if<orangefs::TwoDStripe>(&part.striping.distribution)) {
    two->strip_size *= 1000;
  } else if (auto* varying = std::get_if<orangefs::VarStrip>(&part.striping.distribution)) {
    varying->strips.clear();
    for (const auto& strip : part.striping.period) {
      varying->strips += fmt::format("{}:{};", strip.server, strip.size);
    }
  }
  part.server = static_cast<std::uint32_t>(random() % part.striping.servers);
  part.offset = static_cast<std::int64_t>(random() % 30'000);
  part.size = static_cast<std::int64_t>(random() % 150'000);
  return part;
}

TEST_P(ProxiedDatatypes, BytesComeFromWhereTheyBelong) {
  std::mt19937_64 random(GetParam());
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const Part part = random_part(random);
    const std::vector<std::int64_t> places = part.places();
    const Bytes contents = random_data(random, 1 + random() % 100'000);
    overwrite(contents);
    Bytes wanted;
    for (const std::int64_t at : places) {
      if (at < static_cast<std::int64_t>(contents.size())) {
        wanted.push_back(contents[static_cast<std::size_t>(at)]);
      }
    }
    expect_read(request(part, IoType::read), wanted);
    if (HasFatalFailure()) return;
  }
  expect_slots_are_back();
}

TEST_P(ProxiedDatatypes, BytesGoWhereTheyBelong) {
  std::mt19937_64 random(GetParam() + 1);
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const Part part = random_part(random);
    const std::vector<std::int64_t> places = part.places();
    Bytes contents = random_data(random, 1 + random() % 100'000);
    overwrite(contents);
    const Bytes data = random_data(random, places.size());
    write(request(part, IoType::write), data);
    if (HasFatalFailure()) return;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto at = static_cast<std::size_t>(places[i]);
      if (at >= contents.size()) contents.resize(at + 1);
      contents[at] = data[i];
    }
    expect_read(dense(IoType::read, 10 << 20), contents);
    if (HasFatalFailure()) return;
  }
  expect_slots_are_back();
}

TEST_P(ProxiedDatatypes, SmallRequestsDoTheSame) {
  const Part part{.type = DatatypeBuilder().contiguous(10).hvector(30, 1, 25),
                  .striping = {.distribution = orangefs::SimpleStripe{.strip_size = 64},
                               .servers = 2,
                               .period = {{.server = 0, .size = 64}, {.server = 1, .size = 64}}},
                  .server = 1,
                  .offset = 7,
                  .size = 500};
  const std::vector<std::int64_t> places = part.places();
  std::mt19937_64 random(1);
  Bytes contents = random_data(random, 2000);
  overwrite(contents);
  const Bytes data = random_data(random, places.size());
  const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  orangefs::Request small = user_.small_write(attributes_, file_, 0, part.offset, text);
  auto& body = std::get<orangefs::SmallIoRequest>(small.body);
  fill(body, part);
  body.aggregate_size = part.size;
  EXPECT_EQ(get<orangefs::SmallIoResponse>(small).result_size,
            static_cast<std::int64_t>(data.size()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    contents[static_cast<std::size_t>(places[i])] = data[i];
  }
  expect_read(dense(IoType::read, 2000), contents);
  small = user_.small_read(attributes_, file_, 0, part.offset, part.size);
  fill(std::get<orangefs::SmallIoRequest>(small.body), part);
  EXPECT_EQ(get<orangefs::SmallIoResponse>(small).data, data);
  expect_slots_are_back();
}

// Reads whose end a proxy could miss.
TEST_P(ProxiedDatatypes, WholeBuffersAndNothingAtAllEndAtOnce) {
  std::mt19937_64 random(2);
  const std::size_t size = 4 * GetParam();
  const Bytes contents = random_data(random, size);
  overwrite(contents);
  const auto block = static_cast<std::int32_t>(GetParam() / 4);
  Part part{.type = DatatypeBuilder().contiguous(block).hvector(8, 1, 2 * block),
            .striping = {.distribution = orangefs::BasicDistribution{}},
            .size = 8 * block};
  Bytes wanted;
  for (const std::int64_t at : part.places())
    wanted.push_back(contents[static_cast<std::size_t>(at)]);
  ASSERT_EQ(wanted.size(), 2 * GetParam());
  expect_read(request(part, IoType::read), wanted);
  part.offset = 16 * block;  // past the end
  expect_read(request(part, IoType::read), {});
  part.striping = {
      .distribution = orangefs::TwoDStripe{.groups = 2, .strip_size = 65536, .factor = 4},
      .servers = 2,
      .period = {}};
  part.type = DatatypeBuilder().contiguous(1);
  part.offset = 0;
  part.size = static_cast<std::int64_t>(GetParam());
  // The first 256 KiB belong to the first group, which is this server.
  expect_read(request(part, IoType::read),
              Bytes(contents.begin(),
                    contents.begin() +
                        static_cast<std::ptrdiff_t>(std::min<std::size_t>(GetParam(), 262'144))));
  expect_slots_are_back();
}

INSTANTIATE_TEST_SUITE_P(FlowBuffers, ProxiedDatatypes, testing::Values(262'144, 65'536));

}  // namespace
}  // namespace vpfs::test
