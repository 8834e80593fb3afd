#include "sim/proxies/whatif/striping.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::sim {
namespace {

TEST(SimStriping, EveryByteIsOnTheDatafileOfItsStrip) {
  constexpr std::uint64_t kStrip = 5;
  for (const std::uint64_t datafiles : {1U, 2U, 3U}) {
    std::vector<std::uint64_t> held(datafiles);
    for (std::uint64_t end = 0; end < 70; ++end) {
      for (std::uint64_t i = 0; i < datafiles; ++i) {
        EXPECT_EQ(bytes_on_datafile(end, kStrip, datafiles, i), held[i]) << end << " on " << i;
      }
      ++held[end / kStrip % datafiles];
    }
  }
}

}  // namespace
}  // namespace vpfs::sim
