// Which jobs count on a mounted directory: users claim the jobs of others and invent new ones.
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/fuse/call_of.h"
#include "test/fuse/mount_process.h"
#include "test/fuse/users.h"

namespace vpfs::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr const char* kJobRules = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
virtual_pfs:
  job-{jobid}: {weight: 1}
  user-{uid}: {weight: 1}
  default: {weight: 1}
rules:
  - match: {jobid: "*"}
    virtual_pfs: job-{jobid}
  - match: {}
    virtual_pfs: user-{uid}
)";

// Job 4711 is of alice on this node, 4712 of mallory on another one.
const std::string kRegistered = std::string(kJobRules) + R"(
jobs: registered
registered_jobs:
  - {jobid: "4711", client: 127.0.0.1, uid: [1001]}
  - {jobid: "4712", client: 192.0.2.9, uid: [1002]}
)";

class MountJobs : public MountTest {
 protected:
  void SetUp() override {
    MountTest::SetUp();
    if (IsSkipped()) return;
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be several users";
    Process probe({"setpriv", "--version"});
    const auto exit = probe.wait();
    if (!exit || !exit->ok()) GTEST_SKIP() << "there is no setpriv";
  }

  // A mount that all users may write to.
  MountProcess& open(MountProcess::Settings settings) {
    MountProcess& mount = mount_.emplace(settings);
    std::filesystem::permissions(mount.scratch(), std::filesystem::perms(0755));
    std::filesystem::permissions(mount.below(), std::filesystem::perms(0777));
    return mount;
  }
  // Writes a file as this user, with this job in the environment. `before` are commands of a shell
  // that come first, as root.
  void write(unsigned uid, const std::string& job, const std::string& before = "") {
    const std::string path = mount_->path() / fmt::format("file-{}", files_++);
    const std::string id = std::to_string(uid);
    Process process({"sh", "-c",
                     before + "exec setpriv --reuid=" + id + " --regid=" + id +
                         " --clear-groups dd if=/dev/zero of=" + path + " bs=64k count=2"},
                    {{"SLURM_JOB_ID", job}});
    const auto exit = process.wait();
    EXPECT_TRUE(exit && exit->ok()) << process.errors();
  }
  // "NAME REQUESTS" of each virtual PFS that has done something.
  std::vector<std::string> done() {
    std::vector<std::string> rows;
    const nlohmann::json status = mount_->idle_status();
    for (const nlohmann::json& each : status["virtual_pfs"]) {
      const auto requests = each["done_requests"].get<std::uint64_t>();
      if (requests > 0)
        rows.push_back(fmt::format("{} {}", each["name"].get<std::string>(), requests));
    }
    return rows;
  }

  std::optional<MountProcess> mount_;
  int files_ = 0;
};

TEST_F(MountJobs, WithoutRegistrationsAnIdIsWhatAProcessSays) {
  open({.config = kJobRules, .options = {"allow_other,jobid=environment"}});
  write(kAlice, "4711");
  write(kMallory, "4711");
  write(kMallory, "invented");
  EXPECT_THAT(done(), UnorderedElementsAre("job-4711 4", "job-invented 2"));
}

TEST_F(MountJobs, AClaimedJobAndInventedOnesGiveNoShareWhereJobsAreRegistered) {
  MountProcess& mount = open({.config = kRegistered});
  write(kAlice, "4711");
  write(kMallory, "4711");
  write(kMallory, "4712");
  for (int i = 0; i < 16; ++i) write(kMallory, fmt::format("invented-{}", i));
  EXPECT_THAT(done(), UnorderedElementsAre("job-4711 2", "user-1002 36"));
  const nlohmann::json status = mount.status();
  EXPECT_EQ(status.value("jobs_not_registered", -1), 36);
  EXPECT_EQ(status.value("jobs_from", ""), "environment");
  const std::string who = mount.ask({"who", "1002"});
  EXPECT_THAT(who, HasSubstr("its job id is not registered for it, so it does not count"));
  EXPECT_THAT(who, HasSubstr("user-1002"));
  EXPECT_THAT(who, Not(HasSubstr("job-")));
}

// Mallory writes hardly anything.
const std::string kMalloryHeld = R"(
mount: {status_file: "{status_file}"}
control: {socket: "{socket}"}
scheduler: {policy: tbf}
virtual_pfs: {slow: {rate: 1 B/s, burst: 1 B}, default: {}}
rules:
  - match: {uid: 1002}
    virtual_pfs: slow
)";

// Makes a file in a thread while the memory of the process cannot be looked into: a page of a file
// that it unmaps has to be written first, and another thread is next. The threads allocate nothing.
int make_unseen(const std::string& mapped, const std::string& made) {
  constexpr std::size_t kMapped = 4096;
  const int file = ::open(mapped.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string data(kMapped, 'x');
  if (file < 0 || ::write(file, data.data(), data.size()) < 0) return errno;
  void* const page = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return errno;
  static_cast<char*>(page)[0] = 'y';
  std::thread maps([] {
    std::this_thread::sleep_for(500ms);
    (void)::mmap(nullptr, kMapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  });
  int problem = 0;
  std::thread makes([&] {
    std::this_thread::sleep_for(1s);
    if (::open(made.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0) problem = errno;
  });
  ::munmap(page, kMapped);
  makes.join();
  maps.join();
  return problem;
}

// The kernel keeps the directory locked while a file is made in it.
TEST_F(MountJobs, AProcessThatCannotBeLookedIntoKeepsNoDirectoryFromOthers) {
  MountProcess& mount =
      open({.config = kMalloryHeld, .options = {"allow_other,jobid=environment"}});
  const std::string made = mount.path() / "made";
  const std::string name = mount.path() / "nothing";
  CallOf makes(kMallory, [&] { return make_unseen(mount.path() / "mapped", made); });
  EXPECT_TRUE(mount.wait_for_queued(1));
  std::this_thread::sleep_for(1500ms);
  CallOf looks(kAlice, [&] { return ::access(name.c_str(), F_OK) == -1 ? errno : 0; });
  EXPECT_EQ(looks.result(5s), ENOENT) << "the directory is locked";
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(mount.below() / "made"); }));
  EXPECT_THAT(mount.ask({"bypass", "on"}), Not(HasSubstr("refused")));
  EXPECT_EQ(makes.result(10s), 0);
}

int write_mapped(const std::string& path) {
  constexpr std::size_t kMapped = 4096;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || ::ftruncate(file, kMapped) != 0) return errno;
  void* const page = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return errno;
  std::memset(page, 'x', kMapped);
  return ::msync(page, kMapped, MS_SYNC) == 0 ? 0 : errno;
}

int write_anew(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  return file >= 0 && ::write(file, "new", 3) == 3 ? 0 : errno;
}

// What is held would be written behind the new data.
TEST_F(MountJobs, AnOpenThatTruncatesWaitsForHeldWritesOfMappedPages) {
  MountProcess& mount =
      open({.config = kMalloryHeld, .options = {"allow_other,jobid=environment"}});
  const std::filesystem::path below = mount.below() / "shared";
  std::ofstream(below) << "old";
  ASSERT_EQ(::chmod(below.c_str(), 0666), 0);
  const std::string path = mount.path() / "shared";
  CallOf maps(kMallory, [&] { return write_mapped(path); });
  ASSERT_TRUE(mount.wait_for_queued(1));
  CallOf makes(kAlice, [&] { return write_anew(path); });
  EXPECT_EQ(makes.result(500ms), std::nullopt);
  EXPECT_THAT(mount.ask({"bypass", "on"}), Not(HasSubstr("refused")));
  EXPECT_EQ(maps.result(10s), 0);
  EXPECT_EQ(makes.result(10s), 0);
  EXPECT_EQ(read_text(below), "new");
}

// Whatever the name service says of it.
TEST_F(MountJobs, ARegistrationMayHaveTheNodesName) {
  MountProcess& mount = open({.config = kRegistered});
  std::array<char, 256> name = {};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_THAT(mount.ask({"job", "start", "4713", "--nodes", "1", "--uid", "1002", "--clients",
                         name.data()}),
              Not(HasSubstr("refused")));
  write(kMallory, "4713");
  write(kAlice, "4713");
  EXPECT_THAT(done(), UnorderedElementsAre("job-4713 2", "job-4711 2"))
      << "alice's only job on this node";
  EXPECT_THAT(mount.ask({"job", "stop", "4713"}), Not(HasSubstr("refused")));
  write(kMallory, "4713");
  EXPECT_THAT(done(), UnorderedElementsAre("job-4713 2", "job-4711 2", "user-1002 2"));
}

// Groups of the kernel's v2 hierarchy, below one that is the root for the mount.
class ControlGroups {
 public:
  ControlGroups() : root_(directory_.path() / fmt::format("vpfs-test-{}", ::getpid())) {
    if (::mount("cgroup2", directory_.path().c_str(), "cgroup2", 0, nullptr) != 0) {
      why_none_ = "control groups cannot be mounted here";
      return;
    }
    std::error_code error;
    if (!std::filesystem::create_directory(root_, error)) {
      why_none_ = "no control group can be made here";
      return;
    }
    Process probe({"sh", "-c",
                   "echo $$ > " + (root_ / "cgroup.procs").string() +
                       " && exec unshare --cgroup cat /proc/self/cgroup"});
    const auto exit = probe.wait();
    if (!exit || !exit->ok() || probe.output().find("0::/\n") == std::string::npos) {
      why_none_ = "there are no namespaces of control groups here";
    }
  }
  ~ControlGroups() {
    while (!made_.empty()) {
      ::rmdir((root_ / made_.back()).c_str());
      made_.pop_back();
    }
    ::rmdir(root_.c_str());
    ::umount2(directory_.path().c_str(), MNT_DETACH);
  }
  ControlGroups(const ControlGroups&) = delete;
  ControlGroups& operator=(const ControlGroups&) = delete;

  [[nodiscard]] const std::string& why_none() const { return why_none_; }
  // The commands of a shell with which it enters a group.
  [[nodiscard]] std::string enter(const std::filesystem::path& group) {
    std::filesystem::path whole;
    for (const std::filesystem::path& each : group) {
      whole /= each;
      if (std::filesystem::create_directory(root_ / whole)) made_.push_back(whole);
    }
    return "echo $$ > " + (root_ / group / "cgroup.procs").string() + " && ";
  }

 private:
  TemporaryDirectory directory_;
  std::filesystem::path root_;
  std::vector<std::filesystem::path> made_;
  std::string why_none_;
};

TEST_F(MountJobs, WhereSlurmRunsOnlyItsControlGroupsCount) {
  ControlGroups groups;
  if (!groups.why_none().empty()) GTEST_SKIP() << groups.why_none();
  const std::string enter_root = groups.enter("");
  MountProcess& mount =
      open({.config = kJobRules,
            .wrapper = {"sh", "-c", enter_root + "exec unshare --cgroup \"$@\"", "sh"}});
  const std::string job = groups.enter("system.slice/slurmstepd.scope/job_4711/step_0/user/task_0");
  write(kAlice, "1", job);
  write(kMallory, "4711");
  write(kMallory, "4711", groups.enter("user.slice/user-1002.slice/user@1002.service/job_4711"));
  write(kMallory, "4711",
        groups.enter("user.slice/user-1002.slice/user@1002.service/system.slice/slurmstepd.scope/"
                     "job_4711/step_0"));
  EXPECT_THAT(done(), UnorderedElementsAre("job-4711 2", "user-1002 6"));
  EXPECT_EQ(mount.status().value("jobs_from", ""), "cgroup");
  mount_.reset();
}

}  // namespace
}  // namespace vpfs::test
