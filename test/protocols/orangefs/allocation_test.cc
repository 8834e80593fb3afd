#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include <gtest/gtest.h>

#include "protocols/orangefs/io_summary.h"
#include "protocols/orangefs/message.h"
#include "test/protocols/orangefs/captured.h"
#include "test/support/file_requests.h"

// Counts what decoding allocates, by replacing the global operator new of this program.
namespace {
std::atomic<std::size_t> allocated_bytes = 0;
}  // namespace

void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace vpfs::orangefs {
namespace {

// The widest element for its size on the wire is an Attributes without parts: 48 bytes.
constexpr std::size_t kFactor = 2 * sizeof(Attributes) / 48;
constexpr std::size_t kConstant = 256;

template <typename Work>
std::size_t allocated_by(Work work) {
  const std::size_t before = allocated_bytes;
  work();
  return allocated_bytes - before;
}

std::size_t decoding(std::span<const std::byte> payload) {
  return allocated_by([&] {
    (void)decode_request(payload).has_value();
    (void)decode_response(payload).has_value();
  });
}

bool is_bounded(std::span<const std::byte> payload) {
  return decoding(payload) <= kFactor * payload.size() + kConstant;
}

TEST(Allocation, IsASmallMultipleOfTheInputForDamagedMessages) {
  static_assert(kFactor <= 40);
  std::mt19937_64 random(11);
  for (const auto& payload : test::captured_payloads()) {
    ASSERT_TRUE(is_bounded(payload.bytes)) << payload.name;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::byte> damaged = payload.bytes;
      for (int flips = 0; flips < 4; ++flips) {
        damaged[random() % std::min<std::size_t>(damaged.size(), 300)] =
            static_cast<std::byte>(random() % 4 == 0 ? 0xff : random());
      }
      ASSERT_TRUE(is_bounded(damaged)) << payload.name;
    }
  }
}

TEST(Allocation, IsBoundedForTheMessageThatIsMadeToCostMost) {
  LookupPathResponse answer;
  answer.attributes.resize(300);
  std::vector<std::byte> payload;
  encode_response({.body = answer}, payload);
  ASSERT_TRUE(decode_response(payload));
  EXPECT_TRUE(is_bounded(payload));
}

TEST(Allocation, NoneForASummary) {
  int seen = 0;
  for (const auto& payload : test::captured_payloads()) {
    const auto op = peek_operation(payload.bytes);
    if (!payload.is_request || (op != Op::io && op != Op::small_io)) continue;
    ++seen;
    EXPECT_EQ(allocated_by([&] {
                const auto summary = summarise_io(payload.bytes);
                (void)summary->hints.named("jobid");
                (void)summary->part.readable(1000);
              }),
              0U);
  }
  EXPECT_GT(seen, 0);
}

TEST(Allocation, NoneForTheSizeOfASparseRequest) {
  IoRequestBody io{
      .server_nr = 1, .server_ct = 3, .distribution = TwoDStripe{}, .aggregate_size = 1 << 20};
  io.file_request =
      vpfs::test::DatatypeBuilder().hvector(1000, 4, 8).hindexed({1, 3}, {5, 99999}).request();
  EXPECT_EQ(allocated_by([&] {
              EXPECT_TRUE(part_of(fields_of(io), io.file_request.elements).requested.exact);
            }),
            0U);
}

}  // namespace
}  // namespace vpfs::orangefs
