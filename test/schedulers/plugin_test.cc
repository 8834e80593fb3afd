// What a plugin and a program both lay out for themselves: a change needs a new kPluginInterface.
#include "schedulers/plugin.h"

#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs {
namespace {

// A virtual function's place in the table of its class, times the size of a pointer, plus one: so a
// pointer to it is stored (Itanium C++ ABI, 2.3).
template <typename Function>
std::size_t place_of(Function function) {
  std::uintptr_t first = 0;
  std::memcpy(&first, &function, sizeof(first));
  return (first - 1) / sizeof(void*);
}

// The two destructors come first.
TEST(PluginInterface, HasItsFunctionsInTheOrderOfVersion1) {
  const std::vector<std::size_t> places = {place_of(&Policy::enqueue),
                                           place_of(&Policy::head),
                                           place_of(&Policy::has_no_room),
                                           place_of(&Policy::dispatch),
                                           place_of(&Policy::complete),
                                           place_of(&Policy::withdraw),
                                           place_of(&Policy::let_pass),
                                           place_of(&Policy::set_share),
                                           place_of(&Policy::set_limits),
                                           place_of(&Policy::remove),
                                           place_of(&Policy::served_elsewhere),
                                           place_of(&Policy::forget_elsewhere),
                                           place_of(&Policy::charge_more),
                                           place_of(&Policy::save_all),
                                           place_of(&Policy::save),
                                           place_of(&Policy::restore_all),
                                           place_of(&Policy::restore),
                                           place_of(&Policy::restored),
                                           place_of(&Policy::queued),
                                           place_of(&Policy::any_queued),
                                           place_of(&Policy::prefetch_rows),
                                           place_of(&Policy::prefetch_head),
                                           place_of(&Policy::loans),
                                           place_of(&Policy::holds),
                                           place_of(&Policy::crowds),
                                           place_of(&Policy::flow),
                                           place_of(&Policy::why_waiting),
                                           place_of(&Policy::report),
                                           place_of(&Policy::server)};
  std::vector<std::size_t> expected(places.size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = i + 2;
  EXPECT_EQ(places, expected);
  EXPECT_EQ(kPluginInterface, 1U);
}

// With the standard library of GCC 12 on a machine of 64 bits.
TEST(PluginInterface, HasTheLayoutOfVersion1) {
  if (sizeof(void*) != 8 || std::string_view(kPluginBuild) != "libstdc++") GTEST_SKIP();
  EXPECT_EQ(kPluginLayout, 6548347006650999249U) << "a new layout needs a new kPluginInterface";
}

TEST(PluginInterface, ASizeMoreIsAnotherLayout) {
  EXPECT_NE((plugin::layout_of<std::uint32_t>()), (plugin::layout_of<std::uint64_t>()));
  EXPECT_NE((plugin::layout_of<std::uint32_t, std::uint64_t>()),
            (plugin::layout_of<std::uint64_t, std::uint32_t>()));
}

}  // namespace
}  // namespace vpfs
