#include "fuse/mount_options.h"

#include <gmock/gmock.h>

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of_options(const std::string& list, std::string_view source = "posix:/data") {
  const auto options = parse_mount_options(source, "/mnt", {list});
  return options ? "" : options.error().message;
}

TEST(MountOptions, NeedNothingButASourceAndADirectory) {
  const auto options = parse_mount_options("posix:/data", "/mnt", {});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->source, "/data");
  EXPECT_EQ(options->point.source, "posix:/data");
  EXPECT_EQ(options->point.directory, "/mnt");
  EXPECT_FALSE(options->point.allow_other);
  EXPECT_TRUE(options->point.auto_unmount);
  EXPECT_FALSE(options->point.stacked);
  EXPECT_FALSE(options->jobs.always);
  EXPECT_EQ(options->interrupts, Interrupts::of_dying);
}

TEST(MountOptions, AreListsThatMayBeGivenSeveralTimes) {
  const auto options = parse_mount_options(
      "posix:/data", "/mnt",
      {"allow_other,config=/etc/a.yaml,jobid=42", "attr_timeout=2.5,entry_timeout=100 ms,intr",
       "control=/run/x.sock,job_variables=A:B,threads=8,noacl,ro,noexec,noauto_unmount,stacked",
       "log=/var/log/vpfs-mount/a.log,log_level=warn"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_TRUE(options->point.allow_other);
  EXPECT_EQ(options->config, "/etc/a.yaml");
  EXPECT_EQ(options->control, "/run/x.sock");
  EXPECT_EQ(options->log, "/var/log/vpfs-mount/a.log");
  EXPECT_EQ(options->log_level, "warn");
  EXPECT_EQ(options->jobs.always, "42");
  EXPECT_THAT(options->jobs.variables, ElementsAre("A", "B"));
  EXPECT_EQ(options->attribute_timeout, 2500ms);
  EXPECT_EQ(options->entry_timeout, 100ms);
  EXPECT_EQ(options->interrupts, Interrupts::all);
  EXPECT_EQ(options->threads, 8U);
  EXPECT_FALSE(options->acl);
  EXPECT_TRUE(options->point.read_only);
  EXPECT_FALSE(options->point.auto_unmount);
  EXPECT_TRUE(options->point.stacked);
  EXPECT_THAT(options->point.others, ElementsAre("noexec"));
}

TEST(MountOptions, OfFstabThatAreForOthersArePassedOver) {
  EXPECT_EQ(error_of_options("defaults,noauto,_netdev,nofail,x-systemd.automount,user"), "");
}

TEST(MountOptions, JobidAutoIsTheDefault) {
  const auto source = [](const std::string& list) {
    const auto options = parse_mount_options("posix:/data", "/mnt", {list});
    return options ? std::optional(options->jobs.source) : std::nullopt;
  };
  EXPECT_EQ(source("jobid=cgroup"), JobSource::cgroup);
  EXPECT_EQ(source("jobid=cgroup,jobid=environment"), JobSource::environment);
  EXPECT_EQ(source("jobid=cgroup,jobid=auto"), JobSource::automatic);
  EXPECT_EQ(source("rw"), JobSource::automatic);
  const auto options = parse_mount_options("posix:/data", "/mnt", {"jobid=7,jobid=auto"});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->jobs.always);
}

TEST(MountOptions, AMistakeIsNamedWithWhatWasMeant) {
  EXPECT_EQ(error_of_options("allow_othre"),
            "-o allow_othre: unknown; did you mean 'allow_other'?");
  EXPECT_EQ(error_of_options(""), "-o: it needs options, such as allow_other");
  EXPECT_EQ(error_of_options("jobid"), "-o jobid: it needs a value");
  EXPECT_EQ(error_of_options("jobid="),
            "-o jobid: it needs 'auto', 'cgroup', 'environment' or a job id");
  EXPECT_EQ(error_of_options("jobid=cgruop"),
            "-o jobid: 'cgruop' is too near to 'cgroup' for a job id");
  EXPECT_EQ(error_of_options("jobid=a b"),
            "-o jobid: it needs 1 to 128 printable characters without a space");
  EXPECT_EQ(error_of_options("intr=1"), "-o intr: it takes no value");
  EXPECT_EQ(error_of_options("threads=1"), "-o threads: '1' is not a number from 2 to 4096");
  EXPECT_EQ(error_of_options("threads=8x"), "-o threads: '8x' is not a number from 2 to 4096");
  EXPECT_EQ(error_of_options("attr_timeout=-1"), "-o attr_timeout: '-1' is not a time");
  EXPECT_EQ(error_of_options("config="), "-o config: it needs a value");
  EXPECT_EQ(error_of_options("log=journl"),
            "-o log: 'journl' is not `stderr`, `journal` or a file with its directory, such as "
            "./vpfs-mount.log");
  EXPECT_EQ(error_of_options("log="),
            "-o log: '' is not `stderr`, `journal` or a file with its directory, such as "
            "./vpfs-mount.log");
  EXPECT_EQ(error_of_options("log_level=loud"),
            "-o log_level: unknown log level \"loud\" (known: trace, debug, info, warn, error, "
            "off)");
  EXPECT_THAT(error_of_options("job_variables=A::B"),
              HasSubstr("-o job_variables: it needs names"));
  EXPECT_EQ(error_of_options("allow_other,allow_root"), "-o allow_root: it excludes allow_other");
}

TEST(MountOptions, ASourceOfAnotherKindIsNamed) {
  const std::string kinds = "it must be posix:DIRECTORY or tcp://HOST:PORT/NAME";
  EXPECT_EQ(error_of_options("", "/data"), "'/data' is not a source: " + kinds);
  EXPECT_EQ(error_of_options("", "posix:"), "'posix:' is not a source: " + kinds);
  EXPECT_THAT(error_of_options("", "tcp://host"), HasSubstr("tcp://host"));
}

TEST(MountOptions, AnAddressIsAnOrangefs) {
  const auto options =
      parse_mount_options("tcp-px://meta1:3334/vpfs", "/mnt",
                          {"jobid=auto,workers=4,connections=2,retry_for=90,locks=local,vpfs=big,"
                           "layout=list:s1:s0"});
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_TRUE(options->address);
  EXPECT_EQ(options->address->scheme, "tcp-px");
  EXPECT_EQ(options->address->host_port, "meta1:3334");
  EXPECT_EQ(options->address->file_system, "vpfs");
  EXPECT_EQ(options->point.source, "tcp-px://meta1:3334/vpfs");
  EXPECT_EQ(options->workers, 4U);
  EXPECT_EQ(options->connections, 2U);
  EXPECT_EQ(options->retry_for, std::chrono::seconds(90));
  EXPECT_TRUE(options->local_locks);
  EXPECT_EQ(options->virtual_pfs, "big");
  EXPECT_THAT(options->layout.names, ElementsAre("s1", "s0"));
}

TEST(MountOptions, HowLongWorkersPollHasABound) {
  const auto parsed = [](const std::string& value) {
    return parse_mount_options("tcp://meta1:3334/vpfs", "/mnt", {"busy_poll=" + value});
  };
  EXPECT_EQ(parsed("50us")->busy_poll, std::chrono::microseconds(50));
  EXPECT_EQ(parsed("0")->busy_poll, Duration::zero());
  EXPECT_EQ(parsed("auto")->busy_poll, std::nullopt);
  EXPECT_EQ(parsed("50us,busy_poll=auto")->busy_poll, std::nullopt);
  EXPECT_THAT(parsed("2ms").error().message, HasSubstr("busy_poll: '2ms' is more than 1 ms"));
  EXPECT_THAT(parsed("soon").error().message, HasSubstr("busy_poll: 'soon' is not a time"));
}

TEST(MountOptions, WordsForTheOtherKindOfSourceAreNamed) {
  const std::string address = "tcp://meta1:3334/vpfs";
  EXPECT_EQ(error_of_options("config=/etc/x", address),
            "-o config: it is for posix:DIRECTORY only");
  EXPECT_EQ(error_of_options("threads=8", address), "-o threads: it is for posix:DIRECTORY only");
  EXPECT_EQ(error_of_options("locks=local"), "-o locks: it is for tcp://HOST:PORT/NAME only");
  EXPECT_EQ(error_of_options("locks=global", address),
            "-o locks: 'global' is neither 'none' nor 'local'");
  EXPECT_EQ(error_of_options("workers=0", address), "-o workers: '0' is not a number from 1 to 64");
  EXPECT_EQ(error_of_options("retry_for=soon", address), "-o retry_for: 'soon' is not a time");
  EXPECT_THAT(error_of_options("layout=near", address),
              HasSubstr("-o layout: 'near' is not a layout"));
  EXPECT_THAT(error_of_options("vpfs=a b", address), HasSubstr("-o vpfs: it needs 1 to 128"));
}

}  // namespace
}  // namespace vpfs::fuse
