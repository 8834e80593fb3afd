#include "base/units.h"

#include <gtest/gtest.h>

namespace vpfs {
namespace {

using namespace std::chrono_literals;

std::string error_of(const auto& result) {
  return result ? "no error" : result.error().message;
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(parse_bytes("65536").value(), Bytes{65536});
  EXPECT_EQ(parse_bytes("64 KiB").value(), Bytes{64 * kKiB});
  EXPECT_EQ(parse_bytes("64KiB").value(), Bytes{64 * kKiB});
  EXPECT_EQ(parse_bytes("1.5 GiB").value(), Bytes{3 * kGiB / 2});
  EXPECT_EQ(parse_bytes("10 MB").value(), Bytes{10'000'000});
  EXPECT_EQ(parse_bytes(" 0 B ").value(), Bytes{0});
  EXPECT_EQ(parse_bytes("0.000977 MB").value(), Bytes{977});
  EXPECT_EQ(parse_bytes("2.50 KiB").value(), Bytes{2560});
  EXPECT_EQ(parse_bytes("18446744073709551615").value(), Bytes{UINT64_MAX});
}

TEST(Units, SaysWhatIsWrongWithASize) {
  EXPECT_EQ(error_of(parse_bytes("1.3 KiB")), "\"1.3 KiB\" is not a whole number of bytes");
  EXPECT_EQ(error_of(parse_bytes("0.5")), "\"0.5\" is not a whole number of bytes");
  EXPECT_EQ(error_of(parse_bytes("5 bananas")),
            "\"5 bananas\" has an unknown unit \"bananas\" "
            "(known: B, KiB, MiB, GiB, TiB, PiB, kB, KB, MB, GB, TB)");
  EXPECT_EQ(error_of(parse_bytes("10M")),
            "\"10M\" has an unknown unit \"M\" "
            "(known: B, KiB, MiB, GiB, TiB, PiB, kB, KB, MB, GB, TB); did you mean MiB?");
  EXPECT_EQ(error_of(parse_bytes("many")), "\"many\" is not a number with a unit");
  EXPECT_EQ(error_of(parse_bytes("")), "\"\" is not a number with a unit");
  EXPECT_EQ(error_of(parse_bytes("-1 KiB")), "\"-1 KiB\" is not a number with a unit");
  EXPECT_EQ(error_of(parse_bytes("1. KiB")), "\"1. KiB\" is not a number with a unit");
  EXPECT_EQ(error_of(parse_bytes("18446744073709551616")), "\"18446744073709551616\" is too large");
  EXPECT_EQ(error_of(parse_bytes("16384 PiB")), "\"16384 PiB\" is too large");
  EXPECT_EQ(error_of(parse_bytes("0.0000000000001 PiB")),
            "\"0.0000000000001 PiB\" is not a whole number of bytes");
}

TEST(Units, ParsesRates) {
  EXPECT_EQ(parse_rate("400 MiB/s").value(), BytesPerSecond{400 * kMiB});
  EXPECT_EQ(parse_rate("100/s").value(), BytesPerSecond{100});
  EXPECT_EQ(error_of(parse_rate("100 MB")), "\"100 MB\" is not a rate; did you mean \"100 MB/s\"?");
  EXPECT_EQ(error_of(parse_rate(" 1.5GiB ")),
            "\" 1.5GiB \" is not a rate; did you mean \"1.5GiB/s\"?");
  EXPECT_EQ(error_of(parse_rate("400")), "\"400\" needs a unit, such as \"400 MiB/s\"");
  EXPECT_EQ(error_of(parse_rate("fast")),
            "\"fast\" is not a rate: expected one such as \"400 MiB/s\"");
}

TEST(Units, ParsesDurations) {
  EXPECT_EQ(parse_duration("250 ms").value(), 250ms);
  EXPECT_EQ(parse_duration("30s").value(), 30s);
  EXPECT_EQ(parse_duration("2 min").value(), 2min);
  EXPECT_EQ(parse_duration("1 h").value(), 1h);
  EXPECT_EQ(parse_duration("50 us").value(), 50us);
  EXPECT_EQ(parse_duration("10 ns").value(), 10ns);
  EXPECT_EQ(parse_duration("0.5 s").value(), 500ms);
  EXPECT_EQ(parse_duration("0").value(), Duration::zero());
}

TEST(Units, ADurationNeedsItsUnit) {
  EXPECT_EQ(error_of(parse_duration("5")),
            "\"5\" needs a unit, such as \"5 s\" (known: ns, us, ms, s, min, h)");
  EXPECT_EQ(error_of(parse_duration("5 days")),
            "\"5 days\" has an unknown unit \"days\" (known: ns, us, ms, s, min, h)");
  EXPECT_EQ(error_of(parse_duration("10000000 h")), "\"10000000 h\" is too large");
}

TEST(Units, PrintsTheShortestForm) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{1000}), "1000 B");
  EXPECT_EQ(to_string(Bytes{1025}), "1025 B");
  EXPECT_EQ(to_string(Bytes{65536}), "64 KiB");
  EXPECT_EQ(to_string(Bytes{3 * kMiB / 2}), "1.5 MiB");
  EXPECT_EQ(to_string(Bytes{65537}), "64.0 KiB");
  EXPECT_EQ(to_string(Bytes{UINT64_MAX}), "16384.0 PiB");
  EXPECT_EQ(to_string(BytesPerSecond{400 * kMiB}), "400 MiB/s");
  EXPECT_EQ(to_string(Duration(250ms)), "250 ms");
  EXPECT_EQ(to_string(Duration(100s)), "100 s");
  EXPECT_EQ(to_string(Duration(90s)), "1.5 min");
  EXPECT_EQ(to_string(Duration(1234567ns)), "1.2 ms");
  EXPECT_EQ(to_string(Duration::zero()), "0 s");
  EXPECT_EQ(to_string(Duration(-5ms)), "-5 ms");
}

TEST(Units, WhatIsPrintedExactlyParsesBack) {
  for (const std::uint64_t count : {1UL, 999UL, 4096UL, 5 * kMiB, 7 * kGiB, 1536 * kGiB}) {
    EXPECT_EQ(parse_bytes(to_string(Bytes{count})).value(), Bytes{count});
  }
  for (const Duration duration : {Duration(1ns), Duration(20us), Duration(1500ms), Duration(3h)}) {
    EXPECT_EQ(parse_duration(to_string(duration)).value(), duration);
  }
}

}  // namespace
}  // namespace vpfs
