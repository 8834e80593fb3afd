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

// Prometheus refuses a whole answer because of one of them.
TEST(Families, BytesThatAreNotCharactersAreReplacedInLabels) {
  Families families;
  families.gauge("vpfs_x", "Something.");
  families.set({{"job", "a\xff"}}, 1);
  EXPECT_NE(families.text().find("{job=\"a\xef\xbf\xbd\"}"), std::string::npos);
}

}  // namespace
}  // namespace vpfs::control
