#include "fuse/mount_point.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <poll.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/joined.h"
#include "base/one_line.h"
#include "base/result.h"
#include "fuse/direct_io.h"
#include "fuse/message.h"
#include "fuse/mount_table.h"
#include "net/descriptor.h"

extern char** environ;

namespace vpfs::fuse {
namespace {

// FUSE_DIRECT_IO_ALLOW_MMAP of the second word of flags, which <linux/fuse.h> has since Linux 6.6.
constexpr std::uint32_t kDirectIoMayBeMapped = 1U << 4;
constexpr std::string_view kOwnType = "fuse.vpfs";

// Where this thread's answers go instead of to the kernel, if not null.
thread_local std::vector<std::byte>* captured = nullptr;
// What libfuse said last on this thread, instead of on standard error.
thread_local std::string last_words;

std::string error_text(int number) {
  return std::generic_category().message(number);
}

void take_words(fuse_log_level /*level*/, const char* format, std::va_list arguments) {
  std::array<char, 512> text = {};
  (void)std::vsnprintf(text.data(), text.size(), format, arguments);
  last_words = one_short_line(text.data());
  spdlog::debug("libfuse: {}", last_words);
}

// For a list of options, where a comma ends a word.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char each : text) {
    if (each == ',' || each == '\\') safe += '\\';
    safe += each;
  }
  return safe;
}

// The last part of an answer that opens a file, new or not, ends with a fuse_open_out.
void allow_parallel_writes(const iovec& part) {
  fuse_open_out opened;
  auto* const place = static_cast<std::byte*>(part.iov_base) + part.iov_len - sizeof opened;
  std::memcpy(&opened, place, sizeof opened);
  opened.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
  std::memcpy(place, &opened, sizeof opened);
}

ssize_t write_answer(int descriptor, iovec* parts, int count, void* /*owner*/) {
  if (ParallelWrites::are_wanted() && count > 1 &&
      parts[count - 1].iov_len >= sizeof(fuse_open_out)) {
    allow_parallel_writes(parts[count - 1]);
  }
  if (captured == nullptr) return ::writev(descriptor, parts, count);
  const std::size_t before = captured->size();
  for (const iovec& part : std::span(parts, static_cast<std::size_t>(count))) {
    const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
    captured->insert(captured->end(), bytes, bytes + part.iov_len);
  }
  return static_cast<ssize_t>(captured->size() - before);
}

ssize_t read_message(int descriptor, void* into, std::size_t size, void* /*owner*/) {
  return ::read(descriptor, into, size);
}

fuse_session* new_session(std::vector<std::string>& arguments, const fuse_lowlevel_ops& operations,
                          void* owner) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size());
  for (std::string& each : arguments) pointers.push_back(each.data());
  fuse_args all = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  fuse_session* const session = fuse_session_new(&all, &operations, sizeof operations, owner);
  fuse_opt_free_args(&all);
  return session;
}

// A mount whose program has just died is taken away by fusermount3, which takes a moment. This
// waits for it, so that the program can be restarted at once. The kernel may still know the
// attributes of a dead mount's directory, but statfs always asks. Returns an errno, or zero.
int look_at(const std::string& directory, struct stat& there) {
  constexpr int kTries = 100;
  constexpr int kBetween = 10;  // milliseconds
  for (int tries = 1;; ++tries) {
    struct statfs ignored = {};
    if (::stat(directory.c_str(), &there) == 0 && ::statfs(directory.c_str(), &ignored) == 0) {
      return 0;
    }
    const bool is_dead = errno == ENOTCONN || errno == ECONNABORTED;
    if (!is_dead || tries == kTries) return errno;
    (void)::poll(nullptr, 0, kBetween);
  }
}

// Whether the last of two opposite words is the first one.
bool is_asked_for(const std::vector<std::string>& words, std::string_view word,
                  std::string_view opposite) {
  bool is = false;
  for (const std::string& each : words) {
    if (each == word || each == opposite) is = each == word;
  }
  return is;
}

// fusermount3 stays for as long as the mount, and has what it inherits open: a connection would
// stay open although the mount closes it. Not every library opens its sockets so that no program
// inherits them. What libfuse hands over is opened later.
std::vector<int> all_descriptors() {
  std::error_code error;
  std::vector<int> all;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    all.push_back(static_cast<int>(std::strtol(each.path().filename().c_str(), nullptr, 10)));
  }
  return all;
}

// fusermount3 looks only once whether the mount is dead: when its socket closes. The kernel closes
// the descriptors of a process that ends from the highest number down. So the socket has a lower
// number than all descriptors of the mount.
net::Descriptor above(const net::Descriptor& unmounter, net::Descriptor descriptor) {
  if (descriptor.get() > unmounter.get()) return descriptor;
  net::Descriptor higher(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, unmounter.get() + 1));
  return higher ? std::move(higher) : std::move(descriptor);
}

// libfuse keeps one end of a pair of sockets open if fusermount3 has the other: the latter unmounts
// when the first is closed. It does not tell which descriptor that is.
net::Descriptor new_socket(const std::vector<int>& before) {
  for (const int each : all_descriptors()) {
    if (std::ranges::find(before, each) != before.end()) continue;
    int domain = 0;
    socklen_t size = sizeof domain;
    sockaddr_un name = {};
    socklen_t length = sizeof name;
    ucred peer = {};
    socklen_t peer_size = sizeof peer;
    const bool is_pair = ::getsockopt(each, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                         domain == AF_UNIX &&
                         ::getsockopt(each, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) == 0 &&
                         peer.pid == ::getpid() &&
                         ::getsockname(each, reinterpret_cast<sockaddr*>(&name), &length) == 0 &&
                         length == sizeof name.sun_family;
    if (is_pair) return net::Descriptor(each);
  }
  return {};
}

net::Descriptor moved(net::Descriptor descriptor, net::Descriptor to) {
  const bool has_moved = descriptor && to && ::dup3(descriptor.get(), to.get(), O_CLOEXEC) >= 0;
  return has_moved ? std::move(to) : std::move(descriptor);
}

void keep_descriptors_from_programs() {
  for (const int each : all_descriptors()) {
    if (each > STDERR_FILENO) (void)::fcntl(each, F_SETFD, FD_CLOEXEC);
  }
}

// A process that does not wait for its writes can have this many of them held, and each keeps its
// data here. So they may take a part of the machine's memory, and no more. Those of other processes
// must not wait for them, so it is a large part. A mount of root asks for more: see
// MountPoint::Options.
unsigned most_background() {
  constexpr std::uint64_t kLeast = 256;
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>(background_memory() / kLargestIo, kLeast, UINT16_MAX));
}

// The kernel asks for what follows an answer on any descriptor of the mount. ThreadSanitizer takes
// that for an order among files that were opened here. A descriptor that came by a message is
// something else to it, until its number was a file's.
net::Descriptor known_as_file(net::Descriptor descriptor) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  const net::Descriptor file(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  const net::Descriptor copy(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (file && copy && ::dup3(file.get(), descriptor.get(), O_CLOEXEC) >= 0) {
    (void)::syscall(SYS_dup3, copy.get(), descriptor.get(), O_CLOEXEC);
  }
#endif
#endif
  return descriptor;
}

}  // namespace

std::uint64_t background_memory() {
  constexpr std::uint64_t kPartOfMemory = 4;
  const auto memory = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return memory / kPartOfMemory;
}

void ask_for_limits(fuse_conn_info& connection) {
  connection.max_read = kLargestIo;
  connection.max_write = kLargestIo;
  const unsigned most = most_background();
  // Otherwise an open that truncates overtakes writes of mapped pages that are held. So the kernel
  // waits for these first, as for truncate(2).
  connection.want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC);
  connection.max_background = most;
  connection.congestion_threshold = most;
}

MountPoint::MountPoint(const Options& options, const fuse_lowlevel_ops& operations, void* owner)
    : directory_(options.directory), operations_(operations), owner_(owner) {
  std::vector<std::string> words = {
      // A comma in a name would end it.
      fmt::format("fsname={}", escaped(options.source)), "subtype=vpfs", "default_permissions",
      fmt::format("max_read={}", kLargestIo)};
  if (options.allow_other) words.emplace_back("allow_other");
  if (options.allow_root) words.emplace_back("allow_root");
  if (options.read_only) words.emplace_back("ro");
  if (options.auto_unmount) words.emplace_back("auto_unmount");
  words.insert(words.end(), options.others.begin(), options.others.end());
  arguments_ = {"vpfs-mount", "-o", joined(words, ",")};
}

Result<std::unique_ptr<MountPoint>> MountPoint::mount(const Options& options,
                                                      const fuse_lowlevel_ops& operations,
                                                      void* owner) {
  fuse_set_log_func(take_words);
  const auto problem = [&](const std::string& what) {
    return fail(fmt::format("cannot mount at {}: {}", options.directory, what));
  };
  struct stat there = {};
  if (const int number = look_at(options.directory, there); number != 0) {
    if (number == ENOTCONN || number == ECONNABORTED) {
      return problem(
          "another mount is there whose program has died; unmount it with "
          "\"fusermount3 -u\" or \"umount\"");
    }
    return problem(error_text(number));
  }
  if (!S_ISDIR(there.st_mode)) return problem("it is not a directory");
  if (!options.stacked && type_mounted_at(options.directory) == kOwnType) {
    return problem(
        "a vpfs-mount is there already; unmount it first, or give -o stacked to mount on top of "
        "it");
  }
  std::unique_ptr<MountPoint> mount(new MountPoint(options, operations, owner));
  last_words.clear();
  mount->session_ = new_session(mount->arguments_, operations, owner);
  if (mount->session_ == nullptr) return problem(last_words.empty() ? "bad options" : last_words);
  last_words.clear();
  keep_descriptors_from_programs();
  net::Descriptor low(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> before = all_descriptors();
  if (fuse_session_mount(mount->session_, options.directory.c_str()) != 0) {
    return problem(last_words.empty() ? "the system refuses; fusermount3 has said why"
                                      : last_words);
  }
  mount->mounted_ = true;
  if (options.auto_unmount) mount->unmounter_ = moved(new_socket(before), std::move(low));
  // libfuse closes its own when it unmounts.
  mount->first_ =
      above(mount->unmounter_,
            net::Descriptor(::fcntl(fuse_session_fd(mount->session_), F_DUPFD_CLOEXEC, 0)));
  if (Result<void> greeted = mount->greet(options); !greeted)
    return problem(greeted.error().message);
  mount->read_ahead_far(options.read_ahead);
  if (Result<void> allowed = mount->allow_suid_and_devices(options); !allowed) {
    return problem(allowed.error().message);
  }
  return mount;
}

// With auto_unmount libfuse mounts through fusermount3, without passing "suid" and "dev" on.
Result<void> MountPoint::allow_suid_and_devices(const Options& options) {
  const auto has = [&](std::string_view word, std::string_view opposite) {
    return is_asked_for(options.others, word, opposite);
  };
  const bool suid = has("suid", "nosuid");
  const bool dev = has("dev", "nodev");
  if (!suid && !dev) return {};
  if (::geteuid() != 0) {
    return fail(fmt::format("-o {}: only root may mount with it", suid ? "suid" : "dev"));
  }
  unsigned long flags = MS_REMOUNT | MS_BIND;
  if (!suid) flags |= MS_NOSUID;
  if (!dev) flags |= MS_NODEV;
  if (options.read_only) flags |= MS_RDONLY;
  if (has("noexec", "exec")) flags |= MS_NOEXEC;
  if (has("noatime", "atime")) flags |= MS_NOATIME;
  if (::mount(nullptr, options.directory.c_str(), nullptr, flags, nullptr) != 0) {
    return fail(fmt::format("-o {}: {}", suid ? "suid" : "dev", error_text(errno)));
  }
  return {};
}

// Before anything else the kernel says what it can do, on the first descriptor. libfuse answers,
// except for one capability that it does not know.
Result<void> MountPoint::greet(const Options& options) {
  const Buffer buffer;
  const std::span<std::byte> room = buffer.message();
  ssize_t size = -1;
  do {
    size = ::read(first_.get(), room.data(), room.size());
  } while (size < 0 && (errno == EINTR || errno == ENOENT));
  if (size < static_cast<ssize_t>(sizeof(fuse_in_header) + sizeof(fuse_init_in))) {
    return fail(size < 0 ? error_text(errno) : "the kernel said nothing");
  }
  greeting_.assign(room.begin(), room.begin() + size);
  Result<std::unique_ptr<Channel>> channel =
      new_channel(net::Descriptor(::open("/dev/null", O_RDWR)));
  VPFS_TRY(channel);
  last_words.clear();
  std::vector<std::byte> answer = answer_greeting(**channel);
  if (answer.size() < sizeof(fuse_out_header) + sizeof(fuse_init_out)) return fail(last_words);
  // The file system below clears set-user-id bits itself. Without this the kernel would ask for an
  // extended attribute before each write.
  const auto asked = body_of<fuse_init_in>(greeting_);
  fuse_init_out said;
  std::byte* const place = answer.data() + sizeof(fuse_out_header);
  std::memcpy(&said, place, sizeof said);
  said.flags |= asked.flags & FUSE_HANDLE_KILLPRIV_V2;
  said.max_write = static_cast<std::uint32_t>(options.largest_write);
  if (options.most_background > 0) {
    said.max_background = said.congestion_threshold = options.most_background;
  }
  look_at_greeting();
  if (has_direct_io_) {
    said.flags |= FUSE_INIT_EXT;
    said.flags2 |= kDirectIoMayBeMapped;
  }
  std::memcpy(place, &said, sizeof said);
  if (::write(first_.get(), answer.data(), answer.size()) < 0) {
    return fail(error_text(errno));
  }
  return {};
}

void MountPoint::look_at_greeting() {
  const auto asked = body_of<fuse_init_in>(greeting_);
  has_direct_io_ = (asked.flags & FUSE_INIT_EXT) != 0 && (asked.flags2 & kDirectIoMayBeMapped) != 0;
}

MountPoint::Offer MountPoint::offer() const {
  return {.device = first_.get(),
          .unmounter = unmounter_.get(),
          .greeting = {reinterpret_cast<const char*>(greeting_.data()), greeting_.size()},
          .options = arguments_.back()};
}

Result<std::unique_ptr<MountPoint>> MountPoint::take_over(const Options& options,
                                                          const fuse_lowlevel_ops& operations,
                                                          void* owner, Handed handed) {
  fuse_set_log_func(take_words);
  std::unique_ptr<MountPoint> mount(new MountPoint(options, operations, owner));
  if (mount->arguments_.back() != handed.options) {
    return fail(fmt::format(
        "{} is mounted with the options '{}', which cannot change to '{}': unmount it first",
        options.directory, handed.options, mount->arguments_.back()));
  }
  const auto greeting = std::as_bytes(std::span(handed.greeting));
  if (!handed.device || greeting.size() < sizeof(fuse_in_header) + sizeof(fuse_init_in)) {
    return fail("the running program offers no mount");
  }
  mount->unmounter_ = std::move(handed.unmounter);
  mount->first_ = above(mount->unmounter_, std::move(handed.device));
  mount->greeting_.assign(greeting.begin(), greeting.end());
  mount->look_at_greeting();
  return mount;
}

// What the channel's session says to the kernel's greeting, which other sessions have not seen.
std::vector<std::byte> MountPoint::answer_greeting(Channel& channel) {
  std::vector<std::byte> greeting = greeting_;
  std::vector<std::byte> answer;
  captured = &answer;
  channel.process(greeting);
  captured = nullptr;
  return answer;
}

// Buffered reads come as large as the kernel reads ahead: 128 KiB unless root has changed it.
void MountPoint::read_ahead_far(std::size_t size) {
  if (::geteuid() != 0) return;
  // The mount's own number, without asking its root directory, which is not served yet.
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  std::string device;
  const std::string middle = fmt::format(" / {} ", directory_);
  while (std::getline(mounts, line)) {
    if (line.find(middle) == std::string::npos) continue;
    const std::size_t first = line.find(' ', line.find(' ') + 1) + 1;
    device = line.substr(first, line.find(' ', first) - first);
  }
  if (device.empty()) return;
  std::ofstream setting(fmt::format("/sys/class/bdi/{}/read_ahead_kb", device));
  setting << size / 1024;
}

Result<std::unique_ptr<Channel>> MountPoint::add_channel(bool non_blocking) {
  const int flags = O_RDWR | O_CLOEXEC | (non_blocking ? O_NONBLOCK : 0);
  net::Descriptor descriptor(::open("/dev/fuse", flags));
  if (!descriptor) return fail("/dev/fuse: " + error_text(errno));
  auto first = static_cast<std::uint32_t>(first_.get());
  if (::ioctl(descriptor.get(), FUSE_DEV_IOC_CLONE, &first) != 0) {
    return fail("/dev/fuse: cannot clone the mount's descriptor: " + error_text(errno));
  }
  return adopt_channel(std::move(descriptor));
}

Result<std::unique_ptr<Channel>> MountPoint::adopt_channel(net::Descriptor descriptor) {
  Result<std::unique_ptr<Channel>> channel =
      new_channel(known_as_file(above(unmounter_, std::move(descriptor))));
  if (channel) (void)answer_greeting(**channel);
  return channel;
}

Result<std::unique_ptr<Channel>> MountPoint::new_channel(net::Descriptor descriptor) {
  fuse_session* const session = new_session(arguments_, operations_, owner_);
  if (session == nullptr) return fail("libfuse: " + last_words);
  const fuse_custom_io calls = {.writev = write_answer,
                                .read = read_message,
                                .splice_receive = nullptr,
                                .splice_send = nullptr};
  if (fuse_session_custom_io(session, &calls, descriptor.get()) != 0) {
    fuse_session_destroy(session);
    return fail("libfuse: " + last_words);
  }
  (void)descriptor.release();
  return std::make_unique<Channel>(session);
}

void MountPoint::unmount() {
  if (!mounted_.exchange(false)) return;
  session_ != nullptr ? fuse_session_unmount(session_) : unmount_as_another();
}

// As libfuse does it, of a mount that another process has made.
void MountPoint::unmount_as_another() {
  pollfd entry = {.fd = first_.get(), .events = 0, .revents = 0};
  // It is unmounted already. To do it again would hit what is below.
  if (::poll(&entry, 1, 0) == 1 && (entry.revents & POLLERR) != 0) return;
  if (::umount2(directory_.c_str(), MNT_DETACH) == 0 || ::geteuid() == 0) return;
  std::array<std::string, 6> words = {"fusermount3", "-u", "-q", "-z", "--", directory_};
  std::array<char*, words.size() + 1> arguments = {};
  std::ranges::transform(words, arguments.begin(), [](std::string& each) { return each.data(); });
  pid_t pid = -1;
  if (::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0) {
    (void)::waitpid(pid, nullptr, 0);
  }
}

MountPoint::~MountPoint() {
  unmount();
  if (session_ != nullptr) fuse_session_destroy(session_);
}

}  // namespace vpfs::fuse
