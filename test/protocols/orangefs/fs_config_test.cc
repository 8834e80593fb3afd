#include "protocols/orangefs/fs_config.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::orangefs {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kText = R"(
<Defaults>
	UnexpectedRequests 50
	# comments and unknown options are fine
	ClientJobBMITimeoutSecs 30
	ClientRetryLimit 7   # and here
	clientretrydelaymillisecs 250
	<Security>
		ClientRetryLimit 9
	</Security>
</Defaults>
<Aliases>
	Alias s0 tcp://127.0.0.1:3431, tcp-px://127.0.0.1:4431
	Alias s1 tcp://127.0.0.1:3432
</Aliases>
<FILESYSTEM>
	Name first
	ID 4294967291
	RootHandle 3
	<MetaHandleRanges>
		Range s0 3-10,12
	</MetaHandleRanges>
	<DataHandleRanges>
		Range s1 20-9223372036854775806
	</DataHandleRanges>
	<Distribution>
		Param strip_size
		Value 131072
	</Distribution>
</FILESYSTEM>
<FileSystem>
	Name second
</FileSystem>
)";

TEST(FsConfig, ReadsWhatItKnowsAndSkipsTheRest) {
  const auto [config, problem] = read_fs_config(kText);
  EXPECT_FALSE(problem) << problem->message;
  EXPECT_EQ(config.client_job_timeout, 30s);
  EXPECT_EQ(config.client_flow_timeout, std::nullopt);
  EXPECT_EQ(config.client_retry_limit, 7U);
  EXPECT_EQ(config.client_retry_delay, 250ms);
  ASSERT_EQ(config.aliases.size(), 2U);
  EXPECT_THAT(config.aliases[0].addresses,
              testing::ElementsAre("tcp://127.0.0.1:3431", "tcp-px://127.0.0.1:4431"));
  ASSERT_EQ(config.file_systems.size(), 2U);
  const FsConfig::FileSystem& first = config.file_systems[0];
  EXPECT_EQ(first.id, -5);
  EXPECT_EQ(first.root, 3U);
  EXPECT_EQ(first.strip_size, 131072);
  ASSERT_EQ(first.meta.size(), 1U);
  EXPECT_THAT(first.meta[0].extents, testing::ElementsAre(HandleExtent{.first = 3, .last = 10},
                                                          HandleExtent{.first = 12, .last = 12}));
  EXPECT_EQ(config.file_systems[1].id, std::nullopt);
  EXPECT_EQ(config.file_systems[1].flow_buffer_size, kDefaultFlowBufferSize);
}

struct Bad {
  const char* text;
  const char* complaint;
};

TEST(FsConfig, SaysWhatIsWrongWithALineAndGoesOnAfterIt) {
  const std::string rest = "<FileSystem>\nName last\nID 8\n</FileSystem>\n";
  for (const Bad& bad : {
           Bad{"<Defaults>\nClientRetryLimit many\n</Defaults>\n", "line 2: ClientRetryLimit"},
           Bad{"<Defaults>\nClientJobBMITimeoutSecs -1\n</Defaults>\n", "line 2: ClientJob"},
           Bad{"<FileSystem>\nFlowBufferSizeBytes 0\n</FileSystem>\n", "line 2: FlowBufferSize"},
           Bad{"<FileSystem>\nID\n</FileSystem>\n", "line 2: ID: ''"},
           Bad{"<FileSystem>\nRootHandle 99999999999999999999\n</FileSystem>\n", "RootHandle"},
           Bad{"<FileSystem>\n<Distribution>\nParam strip_size\nValue -1\n</Distribution>\n"
               "</FileSystem>\n",
               "line 4: strip_size"},
           Bad{"<FileSystem>\n<MetaHandleRanges>\nRange s0 9-8\n</MetaHandleRanges>\n"
               "</FileSystem>\n",
               "line 3: '9-8'"},
           Bad{"<FileSystem>\n<MetaHandleRanges>\nRange s0\n</MetaHandleRanges>\n</FileSystem>\n",
               "line 3: Range needs"},
           Bad{"<Aliases>\nAlias s0\n</Aliases>\n", "line 2: Alias needs"},
           Bad{"</Aliases>\n", "line 1: </Aliases> closes nothing"},
           Bad{"<Aliases\n", "line 1: '<Aliases' has no '>'"},
       }) {
    const auto [config, problem] = read_fs_config(bad.text + rest);
    ASSERT_TRUE(problem) << bad.text;
    EXPECT_THAT(problem->message, HasSubstr(bad.complaint));
    ASSERT_FALSE(config.file_systems.empty());
    EXPECT_EQ(config.file_systems.back().id, 8) << bad.text;
  }
}

TEST(FsConfig, ASectionThatIsNotClosedIsAProblem) {
  EXPECT_EQ(read_fs_config("<FileSystem>\nID 8").problem->message,
            "line 2: <FileSystem> is not closed");
}

TEST(FsConfig, ATextThatIsTooLongIsNotRead) {
  std::string text = kText;
  text += std::string(kMostFsConfigSize - text.size(), '#');
  EXPECT_FALSE(read_fs_config(text).problem);
  text += '#';
  const FsConfigReading reading = read_fs_config(text);
  EXPECT_EQ(reading.config, FsConfig());
  EXPECT_THAT(reading.problem->message, HasSubstr("1048577 bytes"));
}

TEST(FsConfig, WhatIsWrittenIsReadBack) {
  FsConfig config = read_fs_config(kText).config;
  config.client_retry_delay = 1500us;
  const std::string text = write_fs_config(config);
  config.client_retry_delay = 2ms;
  const auto [again, problem] = read_fs_config(text);
  EXPECT_FALSE(problem) << problem->message;
  EXPECT_EQ(again, config);
}

}  // namespace
}  // namespace vpfs::orangefs
