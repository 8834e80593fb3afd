#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/result.h"
#include "dataserver/orangefs/metadata.h"
#include "dataserver/store/engine.h"
#include "test/support/process.h"
#include "test/support/run_task.h"

namespace vpfs::dataserver {

// Puts scratch directories in memory if possible, because these tests are not about the speed of
// syncing.
struct ScratchInMemory {
  ScratchInMemory() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  }
};

// One engine with a metadata server on it, as server 0 of two.
class EngineTest : ScratchInMemory, public testing::TestWithParam<EngineKind> {
 protected:
  static constexpr std::uint64_t kNow = 1'800'000'000;

  EngineTest() { open(Bytes{8 * kMiB}); }

  void open(Bytes capacity) {
    metadata_.reset();
    engine_.reset();
    auto engine = open_engine(context_, settings(capacity));
    ASSERT_TRUE(engine) << engine.error().message;
    engine_.emplace(std::move(*engine));
    metadata_ = std::make_unique<Metadata>(*engine_->metadata, ranges_, 0,
                                           [] { return std::chrono::seconds(kNow); });
    ASSERT_TRUE(metadata_->open());
  }
  EngineSettings settings(Bytes capacity) {
    return {.kind = GetParam(),
            .capacity = capacity,
            .directory = directory_.path().string() + "/s0",
            .owner = "server 0 of these tests"};
  }
  [[nodiscard]] bool persists() const { return GetParam() == EngineKind::directory; }

  BstreamStore& bstreams() { return *engine_->bstreams; }
  Metadata& metadata() { return *metadata_; }
  template <typename T>
  T run(net::Task<T> task) {
    return test::run_to_end(context_, std::move(task));
  }

  Outcome<void> write(BstreamId id, std::int64_t offset, std::string_view text) {
    while (!text.empty()) {
      const std::size_t size = std::min(text.size(), bstreams().most_window());
      auto window = run(bstreams().open_window(id, offset, size));
      VPFS_TRY(window);
      std::size_t done = 0;
      for (const std::span<std::byte> part : window->parts) {
        std::memcpy(part.data(), text.data() + done, part.size());
        done += part.size();
      }
      if (auto stored = run(bstreams().commit(std::move(*window))); !stored) return stored;
      text.remove_prefix(size);
      offset += static_cast<std::int64_t>(size);
    }
    return {};
  }
  std::string read(BstreamId id, std::int64_t offset, std::size_t size) {
    const auto parts = run(bstreams().read(id, offset, size));
    std::string text;
    if (!parts) return "failed";
    for (const BstreamStore::Part& part : *parts) {
      text.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    }
    return text;
  }
  orangefs::Handle root_dirdata() {
    return metadata().attributes(HandleRanges::kRoot)->distributed.dirdata_handles.front();
  }
  static orangefs::Attributes owned_by(std::uint32_t uid) {
    orangefs::Attributes attributes;
    attributes.uid = uid;
    attributes.permissions = 0644;
    return attributes;
  }
  orangefs::Handle make_file() {
    orangefs::Handle handle = 0;
    EXPECT_TRUE(metadata().create_file(owned_by(5), std::vector<std::uint32_t>{1, 0}, &handle));
    return handle;
  }

  test::TemporaryDirectory directory_;
  asio::io_context context_;
  HandleRanges ranges_{2};
  std::optional<Engine> engine_;
  std::unique_ptr<Metadata> metadata_;
};

inline std::string engine_name(const testing::TestParamInfo<EngineKind>& info) {
  return info.param == EngineKind::memory ? "Memory" : "Directory";
}

}  // namespace vpfs::dataserver
