#include "tools/vpfsctl/top/top_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/words/printable.h"

namespace vpfs::ctl {
namespace {

using words::columns_of;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TopRow row(std::string name, double mebibytes, double operations) {
  return {.name = std::move(name),
          .proxy = "s0",
          .rule = "dd",
          .class_name = "batch",
          .now = {.bytes = mebibytes * 1048576, .operations = operations},
          .ten = {.bytes = mebibytes * 1048576, .operations = operations},
          .entitled = 2 * mebibytes * 1048576,
          .queued = 3,
          .wait_us = 1500,
          .held_by = "share",
          .limit_bytes = 100 * 1048576};
}

std::vector<std::string> names(std::vector<TopRow> rows, const TopView& view) {
  sort(rows, view);
  std::vector<std::string> result;
  for (const TopRow& each : rows) result.push_back(each.name);
  return result;
}

TEST(TopTable, ShowsAllColumnsWhereThereIsRoom) {
  TopRow b = row("b", 0, 0);
  b.now = {};
  b.ten = {};
  b.rule = b.class_name = b.held_by = "";
  b.entitled = {};
  b.queued = b.wait_us = b.limit_bytes = 0;
  const auto lines =
      top_lines({{.name = "s0", .answers = true, .outstanding = 4, .queued = 3, .bytes = 1048576}},
                {row("a", 1.25, 10), b}, {}, std::nullopt);
  EXPECT_THAT(lines.head, ElementsAre("1 proxy: 1.0 MiB/s, 0 ops/s, 4 outstanding, 3 queued"));
  EXPECT_EQ(lines.titles,
            "NAME RULE CLASS ENTITLED GOT MiB/s 10s ops/s 10s QUEUE WAIT ms HELD BY LIMIT");
  EXPECT_THAT(
      lines.rows,
      ElementsAre(
          "a    dd   batch      2.5       1.2 1.2    10  10     3     1.5 share   100 MiB/s",
          "b    -    -            -         -   -     -   -     0       - -       -"));
}

TEST(TopTable, IsSortedByEachKeyAndReversed) {
  TopRow a = row("a", 1, 30);
  TopRow b = row("b", 3, 10);
  TopRow c = row("c", 2, 20);
  a.queued = 1, b.queued = 2, c.queued = 3;
  a.wait_us = 3, b.wait_us = 1, c.wait_us = 2;
  // What is missing of it: nothing, a half, three quarters.
  a.entitled = a.now.bytes, b.entitled = 2 * *b.now.bytes, c.entitled = 4 * *c.now.bytes;
  const std::vector<TopRow> rows = {a, b, c};
  TopView view;
  const std::vector<std::pair<int, std::vector<std::string>>> orders = {
      {'m', {"b", "c", "a"}}, {'i', {"a", "c", "b"}}, {'q', {"c", "b", "a"}},
      {'w', {"a", "c", "b"}}, {'s', {"c", "b", "a"}}, {'n', {"a", "b", "c"}}};
  for (const auto& [key, order] : orders) {
    EXPECT_TRUE(view.press(key));
    EXPECT_EQ(names(rows, view), order) << static_cast<char>(key);
  }
  EXPECT_TRUE(view.press('r'));
  EXPECT_THAT(names(rows, view), ElementsAre("c", "b", "a"));
  EXPECT_FALSE(view.press('!'));
}

TEST(TopTable, SaysThatAServerIsNotBusy) {
  TopRow idle = row("a", 1, 1);
  idle.entitled = {};
  idle.not_busy = true;
  EXPECT_THAT(top_lines({}, {idle}, {}, std::nullopt).rows[0], HasSubstr(" not busy "));
}

TEST(TopTable, AKeyShowsWhatTheColumnsMeanAndAnotherOneTheTable) {
  TopView view;
  const auto lines = top_lines({}, {row("a", 1, 1)}, view, 80);
  EXPECT_TRUE(view.press('?'));
  const std::vector<std::string> help = top_page(lines, view, 80, 24).lines;
  ASSERT_EQ(help.size(), top_help().size());
  for (std::size_t i = 0; i < help.size(); ++i) EXPECT_EQ(help[i], top_help()[i]) << "is too wide";
  // Each column of the table is in it.
  std::string text;
  for (const std::string& line : help) text += line + "\n";
  for (const char* column :
       {"ENTITLED", "GOT MiB/s", "10s", "ops/s", "QUEUE", "WAIT ms", "HELD BY", "LIMIT"}) {
    EXPECT_THAT(lines.titles, HasSubstr(column));
    EXPECT_THAT(text, HasSubstr(column));
  }
  EXPECT_EQ(top_page(lines, view, 10, 4).lines.size(), 4U);
  EXPECT_TRUE(view.press('m'));
  EXPECT_THAT(top_page(lines, view, 80, 40).lines[1], ::testing::StartsWith("NAME"));
}

TEST(TopTable, RowsWithoutARateAreLast) {
  TopRow none = row("a", 0, 0);
  none.now = {};
  EXPECT_THAT(names({none, row("b", 0, 0)}, {}), ElementsAre("b", "a"));
}

TEST(TopTable, EveryWidthHoldsItsLines) {
  TopRow longest = row(std::string(128, 'x'), 12345.6, 99999);
  longest.rule = std::string(128, 'y');
  longest.held_by = std::string(200, 'z');
  TopView view;
  for (const bool each_proxy : {false, true}) {
    view.each_proxy = each_proxy;
    for (std::size_t width = 1; width < 200; ++width) {
      const auto lines = top_lines({{.name = std::string(128, 's'), .problem = "gone"}},
                                   {longest, row("a", 1, 1)}, view, width);
      EXPECT_LE(columns_of(lines.titles), width);
      for (const auto& line : lines.rows) EXPECT_LE(columns_of(line), width);
      for (const auto& line : lines.head) EXPECT_LE(columns_of(line), width);
    }
  }
}

TEST(TopTable, ATinyScreenStillShowsNameAndRate) {
  const auto lines = top_lines({}, {row("somebody", 12.5, 100)}, {}, 20);
  EXPECT_THAT(lines.titles, HasSubstr("MiB/s"));
  EXPECT_THAT(lines.rows[0], HasSubstr("somebody"));
  EXPECT_THAT(lines.rows[0], HasSubstr("12.5"));
}

TopLines many_lines(std::size_t rows) {
  TopLines lines{.head = {"total", "! s0: BYPASS IS ON"}, .titles = "NAME", .rows = {}};
  for (std::size_t i = 0; i < rows; ++i) lines.rows.push_back("row " + std::to_string(i));
  return lines;
}

TEST(TopTable, EveryHeightHoldsItsPage) {
  for (std::size_t height = 1; height < 60; ++height) {
    for (const std::size_t rows : {0U, 1U, 3U, 100U}) {
      TopView view;
      view.first = 1000;
      EXPECT_LE(top_page(many_lines(rows), view, 80, height).lines.size(), height);
      EXPECT_LE(view.first, rows);
    }
  }
}

TEST(TopTable, APageOfFiveLinesHasTheTitlesAndRows) {
  TopView view;
  const TopPage page = top_page(many_lines(100), view, 20, 5);
  EXPECT_THAT(page.lines, ElementsAre("total", "NAME", "row 0", "row 1", "row 2"));
  EXPECT_EQ(page.titles, 1U);
}

TEST(TopTable, APageShowsTheKeysBelowWhereThereIsRoom) {
  TopView view;
  const TopPage page = top_page(many_lines(2), view, 20, 12);
  ASSERT_EQ(page.lines.size(), 12U);
  EXPECT_EQ(page.lines[0], "total");
  EXPECT_EQ(page.lines[1], "! s0: BYPASS IS ON");
  EXPECT_EQ(page.lines[4], "row 1");
  EXPECT_EQ(page.lines[11], "by m MiB/s, i IOPS,~");
}

TEST(TopTable, KeysMoveTheRowsAndStopAtTheLast) {
  TopView view;
  for (int i = 0; i < 50; ++i) view.press('j');
  EXPECT_THAT(top_page(many_lines(4), view, 20, 5).lines,
              ElementsAre("total", "NAME", "row 1", "row 2", "row 3"));
  view.press('k');
  EXPECT_THAT(top_page(many_lines(4), view, 20, 5).lines,
              ElementsAre("total", "NAME", "row 0", "row 1", "row 2"));
  view.press('k');
  EXPECT_EQ(view.first, 0U);
}

TEST(TopTable, BypassAndSilentProxiesAreLoud) {
  const auto lines = top_lines({{.name = "s0", .answers = true, .bypass = true},
                                {.name = "s1", .answers = false, .problem = "no answer"},
                                {.name = "s2", .answers = true, .draining = true}},
                               {}, {}, std::nullopt);
  EXPECT_THAT(lines.head, ElementsAre("3 proxies: 0.0 MiB/s, 0 ops/s, 0 outstanding, 0 queued",
                                      "! s0: BYPASS IS ON, nothing is held", "? s1: no answer",
                                      "! s2: is draining"));
}

TEST(TopTable, ARowWithoutAnAnswerHasAMark) {
  TopRow silent = row("a", 0, 0);
  silent.is_silent = true;
  EXPECT_THAT(top_lines({}, {silent}, {}, 80).rows[0], ::testing::StartsWith("?a"));
}

TEST(TopTable, NamesDoNotSteerTheTerminal) {
  const auto lines = top_lines({}, {row("\x1b[2J", 1, 1)}, {}, std::nullopt);
  EXPECT_THAT(lines.rows[0], ::testing::StartsWith("\\x1B[2J"));
}

TEST(TopTable, ProxiesAreInAColumnOfTheirOwn) {
  TopView view;
  EXPECT_THAT(top_lines({}, {row("a", 1, 1)}, view, std::nullopt).titles, Not(HasSubstr("PROXY")));
  view.press('p');
  EXPECT_THAT(top_lines({}, {row("a", 1, 1)}, view, std::nullopt).titles,
              ::testing::StartsWith("NAME PROXY RULE"));
}

}  // namespace
}  // namespace vpfs::ctl
