#include "control/metrics/families.h"

#include <gtest/gtest.h>

#include "test/control/metrics/exposition.h"

namespace vpfs::control {
namespace {

using test::Exposition;
using test::read_exposition;

TEST(Families, LabelValuesAreEscaped) {
  const std::string nasty = "a\\b\"c\nd{e}=f,g";
  Families families;
  families.gauge("vpfs_x", "Help.");
  families.set({{"name", nasty}, {"other", ""}}, 1.5);
  const std::string text = families.text();
  const Exposition read = read_exposition(text);
  EXPECT_EQ(read.problems, std::vector<std::string>());
  EXPECT_EQ(read.value("vpfs_x", {{"name", nasty}, {"other", ""}}), 1.5) << text;
}

TEST(Families, MetricWithoutASeriesIsLeftOut) {
  Families families;
  families.gauge("vpfs_empty", "Nothing.");
  families.counter("vpfs_x_total", "Something.");
  families.count({}, 3);
  EXPECT_EQ(families.text(),
            "# HELP vpfs_x_total Something.\n# TYPE vpfs_x_total counter\n"
            "vpfs_x_total 3\n");
}

// 2^53 - 1 is the largest integer before which a double knows all others.
TEST(Families, LargeCountersAreExact) {
  Families families;
  families.counter("vpfs_x_total", "Something.");
  families.count({}, (std::uint64_t{1} << 53) - 1);
  EXPECT_EQ(read_exposition(families.text()).value("vpfs_x_total"), 9007199254740991.0);
}

TEST(Families, BytesThatAreNoCharactersAreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(to_utf8("job-\xc3\xa4-\xe2\x82\xac-\xf0\x9f\x98\x80"),
            "job-\xc3\xa4-\xe2\x82\xac-\xf0\x9f\x98\x80");
  EXPECT_EQ(to_utf8("a\xff z"), "a" + bad + " z");
  EXPECT_EQ(to_utf8("\xc3"), bad) << "cut";
  EXPECT_EQ(to_utf8("\xe2\x82"), bad + bad) << "cut";
  EXPECT_EQ(to_utf8("\xc0\x80"), bad + bad) << "longer than needed";
  EXPECT_EQ(to_utf8("\xe0\x80\x80"), bad + bad + bad) << "longer than needed";
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond the last";
  EXPECT_EQ(to_utf8("\xc3(x"), bad + "(x");
}

}  // namespace
}  // namespace vpfs::control
