#include "fuse/posix/held_reads.h"

#include <deque>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "fuse/posix/files/file_users.h"
#include "test/support/start_time.h"

namespace vpfs::fuse {
namespace {

using namespace std::chrono_literals;
using test::kStart;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kPage = Buffer::kPage;
constexpr std::uint64_t kInode = 77;

class HeldReadsTest : public ::testing::Test {
 protected:
  OpenFilePtr open(uid_t uid, std::uint64_t inode = kInode) {
    auto file = std::make_shared<OpenFile>();
    file->use = users_.begin(inode, uid);
    return file;
  }
  IoRequest& hold(const OpenFilePtr& file, std::uint64_t size, pid_t process,
                  TimePoint at = kStart) {
    IoRequest& request = all_.emplace_back();
    request.unique = all_.size() * 2;
    request.kind = IoKind::read;
    request.file = file;
    request.asked = Bytes{size};
    request.process = process;
    request.arrival = at;
    request.passes_cache = file->passes_cache;
    reads_.add(request);
    return request;
  }

  HeldReads::Round look(TimePoint now) {
    HeldReads::Round round;
    reads_.look(100, now, round);
    return round;
  }

  FileUsers users_;
  std::deque<IoRequest> all_;
  HeldReads reads_;
};

TEST_F(HeldReadsTest, AThreadMayWaitForItsLastReadOfOnePage) {
  const OpenFilePtr file = open(1);
  const OpenFilePtr another_user = open(2);
  IoRequest& large = hold(file, 32 * kPage, ::getpid());
  IoRequest& page = hold(file, kPage, ::getpid());
  IoRequest& last = hold(file, kPage, ::getpid(), kStart + 3s);
  IoRequest& of_another = hold(file, kPage, ::getppid());
  HeldReads::Round round = look(kStart + 5s);
  EXPECT_THAT(round.ahead, UnorderedElementsAre(&large, &page));
  EXPECT_THAT(round.waited, UnorderedElementsAre(&last, &of_another));
  file->closed_by = ::getpid();
  file->closed_at = kStart + 3s;
  round = look(kStart + 5s);
  EXPECT_THAT(round.ahead, UnorderedElementsAre(&large, &page, &last))
      << "it closes the file, so it waits for nothing";
  EXPECT_THAT(round.waited, UnorderedElementsAre(&of_another));
  for (IoRequest* const each : {&large, &page, &last, &of_another, &of_another}) {
    reads_.remove(*each);
  }
  EXPECT_EQ(reads_.files(), 0U);
}

TEST_F(HeldReadsTest, ThreadsThatTheMountCannotTellApartMayAllWait) {
  const OpenFilePtr file = open(1);
  const OpenFilePtr another_user = open(2);
  hold(file, kPage, 0);
  hold(file, kPage, 0, kStart + 3s);
  IoRequest& ahead = hold(file, 2 * kPage, 0);
  file->closed_at = kStart + 3s;
  const HeldReads::Round round = look(kStart + 5s);
  EXPECT_THAT(round.ahead, UnorderedElementsAre(&ahead));
  EXPECT_EQ(round.waited.size(), 2U);
}

// Threads of the mount bring requests in another order than they came in.
TEST_F(HeldReadsTest, ReadAheadIsOfNoUseAfterAClose) {
  const OpenFilePtr file = open(1);
  file->closed_by = 10;
  file->closed_at = kStart;
  IoRequest& ahead = hold(file, 32 * kPage, 11, kStart + 20ms);
  IoRequest& own = hold(file, kPage, 10);
  IoRequest& mapped = hold(file, kPage, 10, kStart + 20ms);
  hold(file, kPage, 11, kStart + 20ms);
  hold(file, 32 * kPage, 11, kStart + 900ms);
  EXPECT_THAT(look(kStart + 900ms).ahead, IsEmpty()) << "another thread may go on reading";
  const HeldReads::Round round = look(kStart + 3s);
  EXPECT_THAT(round.ahead, UnorderedElementsAre(&ahead, &own));
  EXPECT_THAT(round.waited, IsEmpty()) << "no other user has it open";
  const OpenFilePtr another_user = open(2);
  EXPECT_THAT(look(kStart + 3s).waited, Contains(&mapped)) << "an error would be its SIGBUS";
}

TEST_F(HeldReadsTest, OthersWaitForASecondOnly) {
  const OpenFilePtr file = open(1);
  IoRequest& ahead = hold(file, 32 * kPage, ::getpid());
  IoRequest& waited = hold(file, kPage, ::getpid());
  IoRequest& young = hold(file, 32 * kPage, ::getpid(), kStart + 500ms);
  EXPECT_THAT(look(kStart + 5s).ahead, IsEmpty()) << "no other user has it open";
  const OpenFilePtr same_user = open(1);
  EXPECT_THAT(look(kStart + 5s).ahead, IsEmpty());
  {
    const OpenFilePtr another_file = open(2, kInode + 1);
    EXPECT_THAT(look(kStart + 5s).ahead, IsEmpty());
  }
  const OpenFilePtr another_user = open(2);
  EXPECT_THAT(look(kStart + 900ms).ahead, IsEmpty());
  const HeldReads::Round round = look(kStart + 1200ms);
  EXPECT_THAT(round.ahead, UnorderedElementsAre(&ahead));
  EXPECT_THAT(round.waited, UnorderedElementsAre(&waited));
  EXPECT_THAT(look(kStart + 1600ms).ahead, UnorderedElementsAre(&ahead, &young));
}

TEST_F(HeldReadsTest, ThoseThatMayNotFailGoInPartsOfEachUser) {
  const OpenFilePtr file = open(1);
  const OpenFilePtr of_another = open(2);
  for (std::size_t i = 0; i < 2 * HeldReads::kMostAtOnce; ++i) hold(file, kPage, ::getpid());
  hold(of_another, kPage, ::getpid()).charged = 2;
  EXPECT_EQ(look(kStart + 2s).waited.size(), HeldReads::kMostAtOnce + 1);
}

TEST_F(HeldReadsTest, ReadsThatPassTheCacheNeverFail) {
  const OpenFilePtr file = open(1);
  file->passes_cache = true;
  IoRequest& direct = hold(file, 32 * kPage, ::getpid());
  const OpenFilePtr another_user = open(2);
  file->closed_by = ::getpid();
  file->closed_at = kStart;
  EXPECT_THAT(look(kStart + 5s).waited, IsEmpty());
  EXPECT_THAT(look(kStart + 11s).ahead, IsEmpty());
  EXPECT_THAT(look(kStart + 11s).waited, UnorderedElementsAre(&direct));
}

TEST_F(HeldReadsTest, SomeFilesAreLookedAtInTurn) {
  std::vector<OpenFilePtr> files;
  for (std::uint64_t i = 0; i < 10; ++i) {
    files.push_back(open(1, i));
    files.push_back(open(2, i));
    hold(files[2 * i], 2 * kPage, 5);
  }
  EXPECT_EQ(reads_.files(), 10U);
  for (int part = 0; part < 5; ++part) {
    HeldReads::Round round;
    reads_.look(2, kStart + 2s, round);
    EXPECT_EQ(round.ahead.size(), 2U);
    for (IoRequest* const each : round.ahead) reads_.remove(*each);
  }
  EXPECT_EQ(reads_.files(), 0U);
}

TEST(FileUsers, AreForgottenWithTheirLastOpen) {
  FileUsers users;
  {
    FileUsers::Use first = users.begin(1, 10);
    const FileUsers::Use again = users.begin(1, 10);
    EXPECT_FALSE(first.is_shared());
    {
      const FileUsers::Use other = users.begin(1, 11);
      EXPECT_TRUE(first.is_shared());
      EXPECT_TRUE(other.is_shared());
    }
    EXPECT_FALSE(first.is_shared());
    FileUsers::Use moved = std::move(first);
    EXPECT_FALSE(moved.is_shared());
  }
  EXPECT_FALSE(users.begin(1, 12).is_shared());
}

}  // namespace
}  // namespace vpfs::fuse
