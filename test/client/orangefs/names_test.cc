#include "client/orangefs/names.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "test/client/orangefs/problem.h"

namespace vpfs::client {
namespace {

TEST(Names, WhatADirectoryEntryCanBeCalled) {
  for (const char* good : {"a", "...", ".a", "a b", "\xff", "-"}) {
    EXPECT_EQ(problem(check_name(good)), 0) << good;
    EXPECT_EQ(problem(check_new_name(good)), 0) << good;
  }
  for (const std::string_view bad : {std::string_view(""), std::string_view("a/b"),
                                     std::string_view("/"), std::string_view("a\0b", 3)}) {
    EXPECT_EQ(problem(check_name(bad)), EINVAL) << bad;
    EXPECT_EQ(problem(check_new_name(bad)), EINVAL) << bad;
  }
  for (const char* dots : {".", ".."}) {
    EXPECT_EQ(problem(check_name(dots)), EINVAL);
    EXPECT_EQ(problem(check_new_name(dots)), EEXIST);
  }
  EXPECT_EQ(problem(check_name(std::string(255, 'n'))), 0);
  EXPECT_EQ(problem(check_name(std::string(256, 'n'))), ENAMETOOLONG);
  EXPECT_EQ(problem(check_new_name(std::string(256, 'n'))), ENAMETOOLONG);
}

TEST(Names, WhereALinkCanLead) {
  EXPECT_EQ(problem(check_link_target("../a/b")), 0);
  EXPECT_EQ(problem(check_link_target(std::string(4095, 't'))), 0);
  EXPECT_EQ(problem(check_link_target(std::string(4096, 't'))), ENAMETOOLONG);
  EXPECT_EQ(problem(check_link_target("")), ENOENT);
  EXPECT_EQ(problem(check_link_target(std::string_view("a\0b", 3))), EINVAL);
}

}  // namespace
}  // namespace vpfs::client
