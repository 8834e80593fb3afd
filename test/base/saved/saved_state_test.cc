#include "base/saved/saved_state.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace vpfs {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Inner {
  std::int64_t debt = 0;
  template <typename Archive>
  void archive(Archive& fields) {
    fields("debt", debt);
  }
};

struct Thing {
  std::uint32_t small = 0;
  Bytes size = {};
  Duration time = {};
  TimePoint at = {};
  Colour colour = Colour::red;
  bool yes = false;
  std::optional<Duration> maybe;
  std::optional<std::uint64_t> nothing;
  std::string name;
  Wide wide = 0;
  SignedWide negative = 0;
  std::array<std::uint16_t, 3> few = {};
  std::vector<std::uint64_t> many;
  Inner inner;

  template <typename Archive>
  void archive(Archive& fields) {
    fields("small", small);
    fields("size", size);
    fields("time", time);
    fields("at", at);
    fields("colour", colour);
    fields("yes", yes);
    fields("maybe", maybe);
    fields("nothing", nothing);
    fields("name", name);
    fields("wide", wide);
    fields("negative", negative);
    fields("few", few);
    fields("many", many);
    fields("inner", inner);
  }
};

Thing some_thing() {
  return {.small = 7,
          .size = {11},
          .time = Duration(-3),
          .at = TimePoint(Duration(-9)),
          .colour = Colour::green,
          .yes = true,
          .maybe = Duration(5),
          .nothing = {},
          .name = std::string("a\0b", 3),
          .wide = (Wide{1} << 100) + 3,
          .negative = -(SignedWide{1} << 90),
          .few = {1, 2, 65535},
          .many = {1, UINT64_MAX},
          .inner = {.debt = -12}};
}

TEST(SavedState, GivesBackWhatWasSaved) {
  Thing thing = some_thing();
  SavedState saved;
  StateWriter(saved).all_of(thing);
  const Result<SavedState> read = SavedState::decode(saved.encode());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, saved);
  Thing other;
  other.nothing = 5;
  StateReader(*read).all_of(other);
  EXPECT_EQ(other.small, 7U);
  EXPECT_EQ(other.size, Bytes{11});
  EXPECT_EQ(other.time, Duration(-3));
  EXPECT_EQ(other.at, TimePoint(Duration(-9)));
  EXPECT_EQ(other.colour, Colour::green);
  EXPECT_TRUE(other.yes);
  EXPECT_EQ(other.maybe, Duration(5));
  EXPECT_EQ(other.nothing, 5U);  // a missing name leaves what is there
  EXPECT_EQ(other.name, thing.name);
  EXPECT_TRUE(other.wide == thing.wide);
  EXPECT_TRUE(other.negative == thing.negative);
  EXPECT_EQ(other.few, thing.few);
  EXPECT_EQ(other.many, thing.many);
  EXPECT_EQ(other.inner.debt, -12);
}

TEST(SavedState, SkipsWhatTheReaderDoesNotKnowAndKeepsWhatIsMissing) {
  SavedState saved;
  saved.set("future", std::uint64_t{1});
  saved.set("small", std::string("of another kind"));
  saved.set("few", SavedState::Numbers{1, 2});  // of another size
  Thing thing = some_thing();
  StateReader(saved).all_of(thing);
  EXPECT_EQ(thing.small, 7U);
  EXPECT_EQ(thing.few[2], 65535);
  EXPECT_EQ(thing.inner.debt, -12);
}

TEST(SavedState, RefusesEveryTruncationAndReadsNoByteTwice) {
  Thing thing = some_thing();
  SavedState saved;
  StateWriter(saved).all_of(thing);
  const std::string whole = saved.encode();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(SavedState::decode(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(SavedState::decode(whole + "x"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string bad = whole;
      bad[at] = byte;
      (void)SavedState::decode(bad);  // neither crashes nor allocates without bounds
    }
  }
}

TEST(SavedState, RefusesATreeThatIsTooDeep) {
  SavedState inner;
  for (int i = 0; i < 40; ++i) {
    SavedState outer;
    outer.add_list("x").push_back(std::move(inner));
    inner = std::move(outer);
  }
  EXPECT_FALSE(SavedState::decode(inner.encode()));
}

}  // namespace
}  // namespace vpfs
