#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/outcome.h"
#include "test/support/places.h"
#include "test/support/process.h"
#include "test/tools/decode/capture_builder.h"

// The program vpfs-decode.
namespace vpfs {
namespace {

using test::Outcome;
using ::testing::HasSubstr;

const std::filesystem::path kData = test::source("test/data/orangefs");
const std::filesystem::path kBeegfsData = test::source("test/data/beegfs");

Outcome decode(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::program("vpfs-decode"));
  return test::outcome_of(std::move(arguments));
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// Compares summaries with expected_summary.txt: the name of each capture, then the counts of an
// independent decoder. Returns the number of captures.
int check_summaries(const std::filesystem::path& folder) {
  std::ifstream expected(folder / "expected_summary.txt");
  std::string line;
  int captures = 0;
  while (std::getline(expected, line)) {
    EXPECT_TRUE(line.starts_with("## ")) << line;
    const std::string name = line.substr(3);
    std::string summary;
    for (int i = 0; i < 2 && std::getline(expected, line); ++i) summary += line + "\n";
    const Outcome outcome = decode({"--quiet", (folder / name).string()});
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_EQ(outcome.output, summary) << name;
    EXPECT_EQ(outcome.errors, "") << name;
    ++captures;
  }
  return captures;
}

TEST(VpfsDecode, CountsWhatAnIndependentDecoderCountedInEveryCapture) {
  EXPECT_EQ(check_summaries(kData), 14);
  EXPECT_EQ(check_summaries(kBeegfsData), 7);
}

TEST(VpfsDecode, PrintsTheFieldsOfAnIo) {
  const Outcome outcome = decode({(kData / "hints_4k_64k.pcap").string()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output,
              HasSubstr("c6 -> UNEXP tag=8 size=304 REQ IO WRITE handle=9223372036854774782 "
                        "range=0+65536 here=65536 server=0/1 simple_stripe:65536 fs=863887773 "
                        "hints{handle=4611686018427384789 app=job42 client_id=7}"));
  EXPECT_THAT(outcome.output, HasSubstr("uid=0 from=C:vm"));
}

TEST(VpfsDecode, PrintsTheFieldsOfABeegfsIo) {
  const Outcome outcome = decode({"--verbose", (kBeegfsData / "id_quota.pcap.gz").string()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("10.77.0.1:8003 beegfs\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("c0 -> WriteLocalFile target=1 uid=0 offset=0 count=65536 "
                        "handle=2F26721F#0-6B008DA5-1 node=10 owner=0 dir=root file_uid=1001\n"));
  EXPECT_THAT(outcome.output, HasSubstr("file_handle=\"2F26721F#0-6B008DA5-1\" client=10 "));
  EXPECT_THAT(outcome.output, HasSubstr("c0 -> DATA write 65536\n"));
  EXPECT_THAT(outcome.output, HasSubstr("c0 <- WriteLocalFileResp result=65536\n"));
}

TEST(VpfsDecode, VerbosePrintsEveryField) {
  const Outcome outcome = decode({"--verbose", (kData / "swrite.pcap").string()});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("parameters={strip_size=65536}"));
  EXPECT_THAT(outcome.output, HasSubstr("total_bytes=4096 data=<4096 bytes>"));
}

TEST(VpfsDecode, LooksOnlyAtThePortsAskedFor) {
  const Outcome outcome = decode({"--ports", "1", (kData / "swrite.pcap").string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("connections 0"));
  EXPECT_THAT(outcome.errors, HasSubstr("no TCP data"));
}

TEST(VpfsDecode, CaptureThatIsCutIsAnError) {
  const std::vector<std::byte> whole = read_file(kData / "swrite.pcap");
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{30}}) {
    const Outcome outcome =
        decode({"-q", test::write_file("cut.pcap", std::span(whole).first(size))});
    EXPECT_EQ(outcome.code, 1) << size;
    EXPECT_THAT(outcome.errors, HasSubstr("cut.pcap: packet ")) << size;
  }
  const std::vector<std::byte> gzip = read_file(kData / "meta.pcap.gz");
  const Outcome outcome =
      decode({"-q", test::write_file("cut.pcap.gz", std::span(gzip).first(gzip.size() / 2))});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("cut.pcap.gz: "));
}

TEST(VpfsDecode, DamagedMessageIsAnError) {
  const std::vector<std::byte> whole = read_file(kData / "swrite.pcap");
  const std::array<std::byte, 4> magic = {std::byte{0xbf}, std::byte{0xca}, std::byte{0},
                                          std::byte{0}};
  // The magic, the mode, the size, and the protocol version of the first message.
  for (const std::ptrdiff_t offset : {0, 4, 16, 25}) {
    std::vector<std::byte> damaged = whole;
    const auto found = std::ranges::search(damaged, magic);
    ASSERT_FALSE(found.empty());
    *(found.begin() + offset) ^= std::byte{0x40};
    const Outcome outcome = decode({"-q", test::write_file("damaged.pcap", damaged)});
    EXPECT_EQ(outcome.code, 1) << offset;
    EXPECT_EQ(outcome.output.find("errors 0,"), std::string::npos) << outcome.output;
  }
}

// The length, the prefix, the type and the length of the handle of the first write.
TEST(VpfsDecode, DamagedBeegfsMessageIsAnError) {
  const std::vector<std::byte> whole = read_file(kBeegfsData / "small4k.pcap");
  const std::array<std::byte, 6> prefix_and_type = {std::byte{'S'},  std::byte{'F'},
                                                    std::byte{'G'},  std::byte{'B'},
                                                    std::byte{0xc1}, std::byte{0x0b}};
  constexpr std::ptrdiff_t kFoundAt = 12;  // in the message
  for (const std::ptrdiff_t offset : {1, 12, 16, 61}) {
    std::vector<std::byte> damaged = whole;
    const auto found = std::ranges::search(damaged, prefix_and_type);
    ASSERT_FALSE(found.empty());
    *(found.begin() - kFoundAt + offset) ^= std::byte{0x40};
    const Outcome outcome = decode({"-q", test::write_file("damaged.pcap", damaged)});
    EXPECT_EQ(outcome.code, 1) << offset;
    EXPECT_EQ(outcome.output.find("errors 0,"), std::string::npos) << outcome.output;
  }
}

TEST(VpfsDecode, FilesThatAreNotACaptureAreOneLineOfError) {
  const std::string text = "not a capture, but long enough to be one";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"/no/such/file.pcap", "cannot open: No such file or directory"},
      {test::write_file("empty.pcap", {}), "the file is empty"},
      {test::write_file("text.pcap", std::as_bytes(std::span(text))),
       "not a capture: unknown file format"},
  };
  for (const auto& [file, message] : cases) {
    const Outcome outcome = decode({file});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.errors, "vpfs-decode: " + file + ": " + message + "\n");
    EXPECT_EQ(outcome.output, "");
  }
}

TEST(VpfsDecode, AWrongCommandLineExitsWithTwo) {
  const std::string good = (kData / "ping.pcap").string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"-q"},
                                             {"--prots", "1", good},
                                             {"--ports", "99999", good},
                                             {"--ports", "x", good}}) {
    const Outcome outcome = decode(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, HasSubstr("Run with --help"));
  }
}

TEST(VpfsDecode, TheHelpTellsTheExitCodes) {
  const Outcome outcome = decode({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* code : {"Exits with 0", "with 1 when", "with 2 when"}) {
    EXPECT_THAT(outcome.output, HasSubstr(code));
  }
}

TEST(VpfsDecode, OneBadFileOfSeveralIsAnErrorAndTheOthersAreTold) {
  const Outcome outcome = decode({"-q", "/no/such/file", (kData / "ping.pcap").string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("stream bytes 6780, decoded 6780"));
}

}  // namespace
}  // namespace vpfs
