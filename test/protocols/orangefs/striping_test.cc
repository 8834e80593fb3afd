#include "protocols/orangefs/striping.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "test/support/file_requests.h"

namespace vpfs::orangefs {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

IoRequestBody read_of(std::int64_t offset, std::int64_t size, std::int64_t strip,
                      Placement placement) {
  return {.server_nr = placement.server_nr,
          .server_ct = placement.server_ct,
          .distribution = SimpleStripe{.strip_size = strip},
          .file_request = FileRequest::contiguous_bytes(),
          .file_request_offset = offset,
          .aggregate_size = size};
}

// Bytes of [offset, offset + size) that are on the server, counted one by one.
std::int64_t counted(std::int64_t offset, std::int64_t size, std::int64_t strip,
                     Placement placement, std::int64_t datafile_end) {
  std::int64_t count = 0;
  for (std::int64_t at = offset; at < offset + size; ++at) {
    const std::int64_t stripe = at / strip;
    if (stripe % placement.server_ct != placement.server_nr) continue;
    const std::int64_t in_datafile = stripe / placement.server_ct * strip + at % strip;
    if (in_datafile < datafile_end) ++count;
  }
  return count;
}

TEST(Striping, DenseRangesGiveTheBytesThatCountingGives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const auto strip = static_cast<std::int64_t>(random() % 20 + 1);
    Placement placement{.server_ct = static_cast<std::uint32_t>(random() % 5 + 1)};
    placement.server_nr = static_cast<std::uint32_t>(random() % placement.server_ct);
    const auto offset = static_cast<std::int64_t>(random() % 300);
    const auto size = static_cast<std::int64_t>(random() % 300);
    const auto end = static_cast<std::int64_t>(random() % 200);
    const IoRequestBody io = read_of(offset, size, strip, placement);
    EXPECT_TRUE(requested_bytes(io).exact);
    EXPECT_EQ(requested_bytes(io).bytes, counted(offset, size, strip, placement, kMax));
    EXPECT_EQ(readable_bytes(io, end).bytes, counted(offset, size, strip, placement, end));
  }
}

TEST(Striping, ServersOfAFileMoveAllOfIt) {
  std::int64_t total = 0;
  for (std::uint32_t server = 0; server < 3; ++server) {
    total +=
        requested_bytes(read_of(1000, 1 << 20, 65536, {.server_nr = server, .server_ct = 3})).bytes;
  }
  EXPECT_EQ(total, 1 << 20);
}

TEST(Striping, BasicDistributionIsTheIdentity) {
  EXPECT_EQ(physical_offset(BasicDistribution{}, {.server_nr = 0, .server_ct = 1}, 12345), 12345);
}

TEST(Striping, UnknownDistributionsAndMalformedTypesGiveAnUpperBound) {
  IoRequestBody io = read_of(0, 1000, 100, {.server_nr = 1, .server_ct = 2});
  io.distribution = VarStrip{.strips = "all of it"};
  EXPECT_EQ(requested_bytes(io).bytes, 1000);
  EXPECT_FALSE(requested_bytes(io).exact);
  EXPECT_FALSE(readable_bytes(io, 500).exact);
  io = read_of(0, 1000, 100, {.server_nr = 1, .server_ct = 2});
  io.file_request.elements[0].ereq = 7;
  EXPECT_EQ(requested_bytes(io).bytes, 1000);
  EXPECT_FALSE(requested_bytes(io).exact);
}

TEST(Striping, TheSizeOfASparseReadIsKnownWithoutItsBytes) {
  IoRequestBody io = read_of(0, 1000, 100, {.server_nr = 1, .server_ct = 2});
  io.file_request = vpfs::test::DatatypeBuilder().hvector(1000, 1, 8).request();
  const auto kept = SparseIo::of(fields_of(io), io.file_request.elements);
  ASSERT_TRUE(kept);
  for (std::int64_t end = 0; end < 5000; end += 17) {
    EXPECT_EQ(kept->readable(end).bytes, readable_bytes(io, end).bytes);
    EXPECT_TRUE(kept->readable(end).exact);
  }
  io.file_request = FileRequest::contiguous_bytes();
  EXPECT_FALSE(SparseIo::of(fields_of(io), io.file_request.elements));
}

TEST(Striping, TypeThatDoesNotBeginAtItsStartIsNotDense) {
  FileRequest shifted = FileRequest::contiguous_bytes();
  shifted.elements[0].lb = 100;
  shifted.elements[0].ub = 101;
  EXPECT_FALSE(shifted.dense());
}

TEST(Striping, ImpossibleFieldsGiveAnInexactBound) {
  const Placement placement{.server_nr = 0, .server_ct = 2};
  for (const IoRequestBody& io :
       {read_of(-1, 10, 100, placement), read_of(0, -10, 100, placement),
        read_of(kMax, 1, 100, placement), read_of(kMax - 5, kMax, 100, placement)}) {
    EXPECT_EQ(requested_bytes(io).bytes, 0);
    EXPECT_FALSE(requested_bytes(io).exact);
    EXPECT_EQ(readable_bytes(io, kMax).bytes, 0);
  }
  for (const IoRequestBody& io :
       {read_of(0, 10, 0, placement), read_of(0, 10, -100, placement),
        read_of(0, 10, kMax, placement), read_of(0, 10, 100, {.server_nr = 0, .server_ct = 0}),
        read_of(0, 10, 100, {.server_nr = 2, .server_ct = 2})}) {
    EXPECT_EQ(requested_bytes(io).bytes, 10);
    EXPECT_FALSE(requested_bytes(io).exact);
  }
}

TEST(Striping, ReadPastTheEndMovesNothing) {
  const IoRequestBody io = read_of(1000, 100, 65536, {.server_nr = 0, .server_ct = 1});
  EXPECT_EQ(readable_bytes(io, 1000).bytes, 0);
  EXPECT_EQ(readable_bytes(io, 1001).bytes, 1);
  EXPECT_EQ(readable_bytes(io, -5).bytes, 0);
  EXPECT_TRUE(readable_bytes(io, -5).exact);
}

}  // namespace
}  // namespace vpfs::orangefs
