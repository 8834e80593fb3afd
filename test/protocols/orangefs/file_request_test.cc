#include "protocols/orangefs/file_request.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "protocols/orangefs/striping.h"
#include "test/protocols/orangefs/striping_model.h"
#include "test/support/file_requests.h"

namespace vpfs::orangefs {
namespace {

using test::random_striping;
using test::StripingModel;
using vpfs::test::DatatypeBuilder;
using vpfs::test::stream_bytes;

std::int32_t below(std::mt19937_64& random, std::uint64_t end) {
  return static_cast<std::int32_t>(random() % end);
}

// Bytes in order, none twice; nearly all programs use such types.
DatatypeBuilder ordered_type(std::mt19937_64& random, int depth) {
  if (depth == 0) return DatatypeBuilder().contiguous(1 + below(random, 6));
  const DatatypeBuilder inner = ordered_type(random, depth - 1);
  const auto gap = [&random] { return below(random, 3) == 0 ? 0 : below(random, 12); };
  switch (random() % 4) {
    case 0:
      return inner.contiguous(1 + below(random, 3));
    case 1: {
      const std::int32_t length = 1 + below(random, 3);
      return inner.hvector(1 + below(random, 4), length, length * inner.extent() + gap());
    }
    case 2: {
      std::vector<std::int32_t> lengths;
      std::vector<std::int64_t> displacements;
      std::int64_t at = gap();
      for (int i = 0; i <= below(random, 4); ++i) {
        lengths.push_back(1 + below(random, 3));
        displacements.push_back(at);
        at += lengths.back() * inner.extent() + gap();
      }
      return inner.hindexed(lengths, displacements);
    }
    default:
      return inner.resized(0, inner.bytes().back() + 1 + gap());
  }
}

// Any order, with overlaps.
DatatypeBuilder wild_type(std::mt19937_64& random, int depth) {
  const DatatypeBuilder inner = ordered_type(random, depth);
  std::vector<DatatypeBuilder::Member> members;
  for (int i = 0; i <= below(random, 4); ++i) {
    const DatatypeBuilder& type =
        random() % 2 == 0
            ? inner
            : inner.hvector(1 + below(random, 3), 1 + below(random, 2), below(random, 20) - 10);
    members.push_back({.length = 1 + below(random, 2),
                       .displacement = 60 + below(random, 60),
                       .type = std::make_shared<const DatatypeBuilder>(type)});
  }
  return DatatypeBuilder::structure(members).resized(0, 60 + below(random, 200));
}

// Does what a data server does with the elements, loop by loop, without shortcuts.
class ServerWalk {
 public:
  ServerWalk(const std::vector<FileRequestElement>& elements, std::int64_t wanted)
      : elements_(elements), wanted_(wanted) {}

  [[nodiscard]] std::vector<std::int64_t> bytes() {
    const std::int64_t size = elements_[0].aggregate_size;
    type(0, wanted_ / size + 1, 0);
    return bytes_;
  }

 private:
  [[nodiscard]] const FileRequestElement& at(std::int32_t i) const {
    return elements_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t offsets_below(const FileRequestElement& element) const {
    std::int64_t sum = 0;
    for (std::int32_t i = element.ereq; i >= 0; i = at(i).ereq) sum += at(i).offset;
    return sum;
  }
  [[nodiscard]] bool done() const { return static_cast<std::int64_t>(bytes_.size()) >= wanted_; }
  void run(std::int64_t begin, std::int64_t size) {
    for (std::int64_t i = 0; i < size && !done(); ++i) bytes_.push_back(begin + i);
  }

  void type(std::int32_t head, std::int64_t count, std::int64_t base) {
    const FileRequestElement& first = at(head);
    const std::int64_t extent = first.ub - first.lb;
    if (first.ereq < 0 ||
        (first.aggregate_size == extent && at(first.ereq).num_contig_chunks == 1)) {
      return run(base + first.offset + offsets_below(first), count * first.aggregate_size);
    }
    std::int64_t element = 0;
    do {
      for (std::int32_t i = head; i >= 0 && !done(); i = at(i).sreq) {
        const FileRequestElement& part = at(i);
        const FileRequestElement& inner = at(part.ereq);
        std::int32_t block = 0;
        do {
          const std::int64_t begin = base + element * extent + part.offset + block * part.stride;
          if (inner.aggregate_size == inner.ub - inner.lb && inner.num_contig_chunks == 1) {
            run(begin + offsets_below(part), inner.aggregate_size * part.num_ereqs);
          } else {
            type(part.ereq, part.num_ereqs, begin);
          }
        } while (++block < part.num_blocks && !done());
      }
    } while (++element < count && !done());
  }

  const std::vector<FileRequestElement>& elements_;
  std::int64_t wanted_;
  std::vector<std::int64_t> bytes_;
};

IoRequestBody io_of(const StripingModel& model, std::uint32_t server, FileRequest request,
                    std::int64_t offset, std::int64_t size) {
  return {.server_nr = server,
          .server_ct = model.servers,
          .distribution = model.distribution,
          .file_request = std::move(request),
          .file_request_offset = offset,
          .aggregate_size = size};
}

// Compares every requested and readable size with the bytes themselves. A readable size must be
// exact if the type keeps the file's order.
void expect_sizes(const StripingModel& model, const FileRequest& request,
                  const std::vector<std::int64_t>& bytes, std::int64_t offset, bool ordered) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t reach = bytes.empty() ? 1 : *std::ranges::max_element(bytes) + 1;
  for (std::uint32_t server = 0; server < model.servers; ++server) {
    const IoRequestBody io = io_of(model, server, request, offset, size);
    const std::vector<std::int64_t> offsets = model.offsets(server, reach);
    const auto counted = [&](std::int64_t end) {
      return std::ranges::count_if(bytes, [&](std::int64_t at) {
        return model.has(server, at) && offsets[static_cast<std::size_t>(at)] < end;
      });
    };
    ASSERT_TRUE(requested_bytes(io).exact);
    ASSERT_EQ(requested_bytes(io).bytes, counted(reach));
    for (std::int64_t end = 0; end <= offsets.back() + 2; end += 1 + end / 3) {
      const TransferSize size_found = readable_bytes(io, end);
      if (ordered) {
        ASSERT_TRUE(size_found.exact) << end;
      }
      if (size_found.exact) {
        ASSERT_EQ(size_found.bytes, counted(end)) << end;
      } else {
        ASSERT_GE(size_found.bytes, counted(end)) << end;
      }
    }
  }
}

TEST(FileRequest, OrderedTypesMoveTheBytesThatTheyMean) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 400; ++round) {
    const DatatypeBuilder type = ordered_type(random, below(random, 4));
    const std::int64_t offset = below(random, static_cast<std::uint64_t>(3 * type.size()));
    const std::int64_t size = below(random, static_cast<std::uint64_t>(3 * type.size()));
    SCOPED_TRACE(round);
    expect_sizes(random_striping(random), type.request(), stream_bytes(type, offset, size), offset,
                 true);
    if (HasFatalFailure()) return;
  }
}

TEST(FileRequest, AnyTypeMovesWhatAServerWalkingThroughItMoves) {
  std::mt19937_64 random(2);
  int sparse = 0;
  for (int round = 0; round < 300; ++round) {
    const DatatypeBuilder type = wild_type(random, below(random, 3));
    const FileRequest request = type.request();
    const std::int64_t offset = below(random, static_cast<std::uint64_t>(2 * type.size()));
    const std::int64_t size = below(random, static_cast<std::uint64_t>(3 * type.size()));
    std::vector<std::int64_t> bytes = ServerWalk(request.elements, offset + size).bytes();
    bytes.erase(bytes.begin(), bytes.begin() + offset);
    sparse += dense_start(request.elements) ? 0 : 1;
    SCOPED_TRACE(round);
    expect_sizes(random_striping(random), request, bytes, offset, false);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(sparse, 250);
}

TEST(FileRequest, RunsOfTheStreamAreItsBytesInOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const DatatypeBuilder type = wild_type(random, below(random, 3));
    const FileRequest request = type.request();
    if (dense_start(request.elements)) continue;
    Datatype::Storage storage;
    const auto datatype = Datatype::check(request.elements, storage);
    ASSERT_TRUE(datatype) << round;
    const std::int64_t size = 3 * type.size();
    const std::vector<std::int64_t> bytes = ServerWalk(request.elements, size).bytes();
    std::int64_t at = below(random, static_cast<std::uint64_t>(size));
    while (at < size) {
      const Datatype::Run run = datatype->run_at(at);
      ASSERT_GT(run.size, 0);
      for (std::int64_t i = 0; i < run.size && at < size; ++i, ++at) {
        ASSERT_EQ(run.logical + i, bytes[static_cast<std::size_t>(at)]) << round << " " << at;
      }
    }
  }
}

// No client makes such elements. The answer must be right or absent.
TEST(FileRequest, DamagedTypesAreEitherCountedRightOrRefused) {
  std::mt19937_64 random(4);
  int exact = 0;
  for (int round = 0; round < 5000; ++round) {
    FileRequest request = wild_type(random, below(random, 3)).request();
    for (int i = 0; i <= below(random, 2); ++i) {
      FileRequestElement& element = request.elements[random() % request.elements.size()];
      const auto value = static_cast<std::int32_t>(random() % 7) - 1;
      switch (random() % 8) {
        case 0:
          element.offset = value;
          break;
        case 1:
          element.num_ereqs = value;
          break;
        case 2:
          element.num_blocks = value;
          break;
        case 3:
          element.stride = value;
          break;
        case 4:
          element.num_contig_chunks = value;
          break;
        case 5:
          element.ub = 50 + value;
          break;
        case 6:
          element.ereq = value;
          break;
        default:
          element.sreq = value;
          break;
      }
    }
    const std::int64_t size = 100;
    const StripingModel model = random_striping(random);
    const TransferSize found = requested_bytes(io_of(model, 0, request, 0, size));
    if (!found.exact) {
      EXPECT_EQ(found.bytes, size);
      continue;
    }
    ++exact;
    const std::vector<std::int64_t> bytes = ServerWalk(request.elements, size).bytes();
    ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), size) << round;
    ASSERT_EQ(found.bytes,
              std::ranges::count_if(bytes, [&](std::int64_t at) { return model.has(0, at); }))
        << round;
  }
  EXPECT_GT(exact, 500);
}

TEST(FileRequest, ATypeThatBeginsLaterIsDenseFromThere) {
  const DatatypeBuilder type = DatatypeBuilder().contiguous(100).hindexed({1}, {4096});
  EXPECT_EQ(dense_start(type.request().elements), 4096);
  EXPECT_EQ(dense_start(DatatypeBuilder().contiguous(5).request().elements), 0);
  EXPECT_EQ(dense_start(DatatypeBuilder().hvector(4, 2, 3).request().elements), std::nullopt);
}

IoRequestBody hostile_io(FileRequest request, std::int64_t size) {
  return {.server_nr = 1,
          .server_ct = 3,
          .distribution = SimpleStripe{},
          .file_request = std::move(request),
          .aggregate_size = size};
}

TEST(FileRequest, AVectorOfTwoThousandMillionBlocksIsExact) {
  const FileRequestElement byte = FileRequest::contiguous_bytes().elements[0];
  const std::int64_t blocks = (std::int64_t{1} << 31) - 1;
  FileRequest request;
  request.elements = {{.num_blocks = static_cast<std::int32_t>(blocks),
                       .stride = 3,
                       .ub = (blocks - 1) * 3 + 1,
                       .aggregate_size = blocks,
                       .num_contig_chunks = static_cast<std::int32_t>(blocks),
                       .depth = 2,
                       .num_nested_req = 1,
                       .ereq = 1},
                      byte};
  const TransferSize found = requested_bytes(hostile_io(request, blocks));
  EXPECT_TRUE(found.exact);
  EXPECT_NEAR(static_cast<double>(found.bytes), static_cast<double>(blocks) / 3, 65536);
}

TEST(FileRequest, TheLongestListThatClientsSendIsExactHoweverOftenItRepeats) {
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> displacements;
  for (int i = 0; i < 100; ++i) {
    lengths.push_back(1000 + i);
    displacements.push_back(i * 5000);
  }
  const DatatypeBuilder type = DatatypeBuilder().hindexed(lengths, displacements);
  EXPECT_TRUE(requested_bytes(hostile_io(type.request(), type.size() * 100'000)).exact);
}

TEST(FileRequest, LoopsWithoutEndArePaidForOnceAndGivenUp) {
  const FileRequestElement byte = FileRequest::contiguous_bytes().elements[0];
  // Every level goes twice through the next one, at odd distances: 2^60 runs.
  FileRequest request;
  for (std::int32_t level = 0; level < 60; ++level) {
    request.elements.push_back({.num_blocks = 2,
                                .stride = (std::int64_t{1} << level) + 1,
                                .ub = 1000 + level,
                                .aggregate_size = std::int64_t{1} << (60 - level),
                                .num_contig_chunks = 2,
                                .depth = 100,
                                .ereq = level + 1});
  }
  request.elements.push_back(byte);
  EXPECT_FALSE(requested_bytes(hostile_io(request, std::int64_t{1} << 59)).exact);
}

TEST(FileRequest, CyclesAndBadIndexesAreRefused) {
  FileRequest request = DatatypeBuilder().hvector(3, 1, 7).hvector(2, 1, 100).request();
  for (const std::int32_t index : {0, 1, 3, 1000, 2147483647}) {
    FileRequest broken = request;
    broken.elements[1].ereq = index;
    EXPECT_FALSE(requested_bytes(hostile_io(broken, 6)).exact) << index;
    if (index == 1) continue;  // as a sequence that makes sense
    broken = request;
    broken.elements[0].sreq = index;
    EXPECT_FALSE(requested_bytes(hostile_io(broken, 6)).exact) << index;
  }
  EXPECT_TRUE(requested_bytes(hostile_io(request, 6)).exact);
}

TEST(FileRequest, WhatIsDeeperThanItSaysIsRefusedAsTheServerDoes) {
  FileRequest request = DatatypeBuilder().hvector(3, 1, 7).hvector(2, 1, 100).request();
  EXPECT_EQ(request.elements[0].depth, 3);
  request.elements[0].depth = 2;
  EXPECT_TRUE(requested_bytes(hostile_io(request, 6)).exact);
  request.elements[0].depth = 1;
  EXPECT_FALSE(requested_bytes(hostile_io(request, 6)).exact);
}

TEST(FileRequest, BytesBeforeTheFileAreRefused) {
  const FileRequest request = DatatypeBuilder().hvector(3, 1, -7).request();
  EXPECT_FALSE(requested_bytes(hostile_io(request, 3)).exact);
}

}  // namespace
}  // namespace vpfs::orangefs
