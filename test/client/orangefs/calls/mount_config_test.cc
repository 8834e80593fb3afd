#include "client/orangefs/calls/mount_config.h"

#include <string>

#include <gtest/gtest.h>

namespace vpfs::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTwoServers = R"(
<Defaults>
	UnexpectedRequests 50
	EventLogging none
	# comments and unknown options are fine
	BMIModules bmi_tcp
	ClientJobBMITimeoutSecs 30
	ClientJobFlowTimeoutSecs 40
	ClientRetryLimit 7
	ClientRetryDelayMilliSecs 250
	<Security>
		TurnOffTimeouts yes
	</Security>
</Defaults>

<Aliases>
	Alias s0 tcp://127.0.0.1:3431,tcp-px://127.0.0.1:4431
	Alias s1 tcp://127.0.0.1:3432, tcp-px://127.0.0.1:4432
</Aliases>

<Filesystem>
	Name other
	ID 1
	RootHandle 3
	<MetaHandleRanges>
		Range s0 3-10
	</MetaHandleRanges>
	<DataHandleRanges>
		Range s0 11-20
	</DataHandleRanges>
</Filesystem>

<FileSystem>
	Name orangefs
	ID 863887773
	RootHandle 1048576
	FileStuffing yes
	FlowBufferSizeBytes 65536
	DefaultNumDFiles 1
	<MetaHandleRanges>
		Range s0 3-2305843009213693953
		Range s1 2305843009213693954-4611686018427387904
	</MetaHandleRanges>
	<DataHandleRanges>
		Range s0 4611686018427387905-6917529027641081855
		Range s1 6917529027641081856-9223372036854775805,9223372036854775806
	</DataHandleRanges>
	<Distribution>
		Name simple_stripe
		Param strip_size
		Value 131072
	</Distribution>
	<StorageHints>
		TroveSyncMeta yes
	</StorageHints>
</FileSystem>
)";

TEST(MountConfig, TakesItsFileSystemAndZone) {
  const auto config = read_mount_config(kTwoServers, "orangefs", "tcp-px");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->fs_id, 863887773);
  EXPECT_EQ(config->root, 1048576U);
  EXPECT_EQ(config->flow_buffer_size, 65536U);
  EXPECT_EQ(config->strip_size, 131072);
  EXPECT_EQ(config->default_datafiles, 1U);
  ASSERT_EQ(config->servers.size(), 2U);
  EXPECT_EQ(config->servers[0].host_port, "127.0.0.1:4431");
  EXPECT_EQ(config->servers[1].host_port, "127.0.0.1:4432");
  // Servers compare the servers of a layout with the whole alias, and join its words with commas.
  EXPECT_EQ(config->servers[0].alias_text, "tcp://127.0.0.1:3431,tcp-px://127.0.0.1:4431");
  EXPECT_EQ(config->servers[1].alias_text, "tcp://127.0.0.1:3432,,tcp-px://127.0.0.1:4432");
}

TEST(MountConfig, TakesClientTimeoutsAndRetries) {
  const auto config = read_mount_config(kTwoServers, "orangefs", "tcp");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->job_timeout, 30s);
  EXPECT_EQ(config->flow_timeout, 40s);
  EXPECT_EQ(config->retry_limit, 7U);
  EXPECT_EQ(config->retry_delay, 250ms);
}

TEST(MountConfig, FindsTheServerOfAHandle) {
  const auto config = read_mount_config(kTwoServers, "orangefs", "tcp");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->server_of(3), 0U);
  EXPECT_EQ(config->server_of(2305843009213693953), 0U);
  EXPECT_EQ(config->server_of(2305843009213693954), 1U);
  EXPECT_EQ(config->server_of(6917529027641081855), 0U);
  EXPECT_EQ(config->server_of(9223372036854775806), 1U);
  EXPECT_EQ(config->server_of(2), std::nullopt);
  EXPECT_EQ(config->server_of(9223372036854775807), std::nullopt);
}

TEST(MountConfig, HasTheProtocolsDefaults) {
  const std::string least =
      "<Aliases>\nAlias s tcp://h:1\n</Aliases>\n<FileSystem>\nName f\nID -5\nRootHandle 4\n"
      "<MetaHandleRanges>\nRange s 3-9\n</MetaHandleRanges>\n</FileSystem>\n";
  const auto config = read_mount_config(least, "f", "tcp");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->fs_id, -5);
  EXPECT_EQ(config->flow_buffer_size, 262144U);
  EXPECT_EQ(config->strip_size, 65536);
  EXPECT_EQ(config->job_timeout, 300s);
  EXPECT_EQ(config->retry_limit, 5U);
  EXPECT_EQ(config->retry_delay, 2s);
}

struct Bad {
  const char* from;
  const char* to;
  const char* complaint;
};

TEST(MountConfig, EveryErrorNamesItsPlace) {
  for (const Bad& bad : {
           Bad{"ClientRetryLimit 7", "ClientRetryLimit many", "line 9: ClientRetryLimit"},
           Bad{"FlowBufferSizeBytes 65536", "FlowBufferSizeBytes 0", "FlowBufferSizeBytes"},
           Bad{"Value 131072", "Value -1", "strip_size"},
           Bad{"Range s0 4611686018427387905-6917529027641081855", "Range s0 9-8", "'9-8'"},
           Bad{"Range s1 2305843009213693954", "Range s7 2305843009213693954",
               "'s7' is not an Alias"},
           Bad{"</Aliases>", "</Alias>", "</Alias> closes nothing"},
           Bad{"RootHandle 1048576", "RootHandle 9223372036854775807", "root handle"},
       }) {
    std::string text = kTwoServers;
    const std::size_t at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, std::string(bad.from).size(), bad.to);
    const auto config = read_mount_config(text, "orangefs", "tcp");
    ASSERT_FALSE(config) << bad.to;
    EXPECT_NE(config.error().message.find(bad.complaint), std::string::npos)
        << config.error().message;
  }
}

// A new object would look for one without end.
TEST(MountConfig, ReportsThatNoServerHasMetadata) {
  const std::string text =
      "<Aliases>\nAlias s tcp://h:1\n</Aliases>\n<FileSystem>\nName f\nID -5\nRootHandle 4\n"
      "<DataHandleRanges>\nRange s 3-9\n</DataHandleRanges>\n</FileSystem>\n";
  const auto config = read_mount_config(text, "f", "tcp");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "file system 'f': no server has metadata");
}

TEST(MountConfig, ReportsAMissingFileSystemOrZone) {
  EXPECT_NE(read_mount_config(kTwoServers, "none", "tcp").error().message.find("'none'"),
            std::string::npos);
  EXPECT_NE(read_mount_config(kTwoServers, "orangefs", "tcp-x").error().message.find("tcp-x://"),
            std::string::npos);
}

}  // namespace
}  // namespace vpfs::client
