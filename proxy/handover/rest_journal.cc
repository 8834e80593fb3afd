#include "proxy/handover/rest_journal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

namespace vpfs::proxy {
namespace {

constexpr std::uint64_t kJournalMagic = 0x7665727470657376;
constexpr std::uint64_t kJournalVersion = 1;
constexpr std::size_t kHeaderSize = 4096;
constexpr std::size_t kPlaceSize = 512;
constexpr std::size_t kStateSize = kPlaceSize - 9 * sizeof(std::uint64_t);
constexpr std::size_t kStartField = 19;  // of /proc/PID/stat behind the name and the state

// When a process began, in the kernel's ticks; nothing: none runs.
std::optional<std::uint64_t> start_of(std::uint64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::istringstream fields(all.substr(std::min(all.rfind(')') + 1, all.size())));
  std::string field;
  fields >> field;
  const bool has_ended = field == "Z" || field == "X";
  for (std::size_t i = 1; i < kStartField; ++i) fields >> field;
  std::uint64_t start = 0;
  if (has_ended || !(fields >> start)) return std::nullopt;
  return start;
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

std::array<std::uint64_t, 6> numbers_of(const RestRecord& record) {
  return {record.client.cookie, record.client.taken, record.client.given,
          record.server.cookie, record.server.taken, record.server.given};
}

}  // namespace

struct RestJournal::Header {
  std::uint64_t magic;
  std::uint64_t version;
  std::uint64_t places;
  std::uint64_t process;  // which has the connections, and when it began
  std::uint64_t process_start;
  std::uint64_t is_open;
};

struct RestJournal::Place {
  std::uint64_t sequence;  // odd: no record, or half of one
  std::array<std::uint64_t, 6> counts;
  std::uint64_t checksum;  // of all that follows, and the counts
  std::uint64_t size;
  std::array<char, kStateSize> state;

  [[nodiscard]] std::uint64_t sum() const {
    std::uint64_t hash = size;
    const auto add = [&hash](std::uint64_t word) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29;
    };
    for (const std::uint64_t count : counts) add(count);
    for (std::size_t i = 0; i < state.size(); i += sizeof hash) {
      std::uint64_t word = 0;
      std::memcpy(&word, state.data() + i, sizeof word);
      add(word);
    }
    return hash;
  }
};

Result<RestJournal> RestJournal::make(std::size_t places) {
  static_assert(sizeof(Header) <= kHeaderSize && sizeof(Place) == kPlaceSize);
  VPFS_ASSERT(places <= kMostPlaces);
  const std::size_t size = kHeaderSize + places * kPlaceSize;
  net::Descriptor memory(::memfd_create("vpfs-connections", MFD_CLOEXEC));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(size)) != 0) {
    return fail("memory for connections: " + std::system_category().message(errno));
  }
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (at == MAP_FAILED) {
    return fail("memory for connections: " + std::system_category().message(errno));
  }
  RestJournal journal(std::move(memory), {static_cast<std::byte*>(at), size});
  const auto process = static_cast<std::uint64_t>(::getpid());
  journal.header() = {.magic = kJournalMagic,
                      .version = kJournalVersion,
                      .places = places,
                      .process = process,
                      .process_start = start_of(process).value_or(0),
                      .is_open = 0};
  for (std::size_t i = 0; i < places; ++i) journal.at(i).sequence = 1;
  return journal;
}

RestJournal::RestJournal(RestJournal&& other) noexcept
    : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, {})) {}

RestJournal::~RestJournal() {
  if (!bytes_.empty()) (void)::munmap(bytes_.data(), bytes_.size());
}

RestJournal::Header& RestJournal::header() {
  return *reinterpret_cast<Header*>(bytes_.data());
}

RestJournal::Place& RestJournal::at(std::size_t place) {
  return *reinterpret_cast<Place*>(bytes_.data() + kHeaderSize + place * kPlaceSize);
}

bool RestJournal::write(std::size_t place, const RestRecord& record) {
  clear(place);
  const std::string state = record.state.encode();
  Place& to = at(place);
  if (state.size() > to.state.size()) return false;
  to.counts = numbers_of(record);
  to.size = state.size();
  to.state.fill('\0');
  std::memcpy(to.state.data(), state.data(), state.size());
  to.checksum = to.sum();
  store(to.sequence, to.sequence + 1);
  return true;
}

void RestJournal::clear(std::size_t place) {
  std::uint64_t& sequence = at(place).sequence;
  store(sequence, sequence | 1U);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // before anything else is written
}

void RestJournal::open() {
  store(header().is_open, 1);
}

void RestJournal::close() {
  store(header().is_open, 0);
}

// A file that another process may shorten is read and not mapped.
Result<std::vector<RestRecord>> RestJournal::read(int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return fail("it is not a file");
  constexpr std::size_t kMost = kHeaderSize + kMostPlaces * kPlaceSize;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < kHeaderSize || size > kMost) return fail(fmt::format("it has {} bytes", size));
  std::vector<std::byte> bytes(size);
  const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), 0);
  if (got != static_cast<ssize_t>(size)) return fail("it cannot be read");

  Header header = {};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kJournalMagic) return fail("it is something else");
  if (header.version != kJournalVersion) {
    return fail(fmt::format("it has version {}, and this program knows {}", header.version,
                            kJournalVersion));
  }
  if (header.places != (size - kHeaderSize) / kPlaceSize) return fail("it has another length");
  if (header.is_open != 1) return fail("its process was handing its connections over");
  if (start_of(header.process) == header.process_start) {
    return fail(fmt::format("process {} still runs", header.process));
  }
  std::vector<RestRecord> records;
  for (std::size_t i = 0; i < header.places; ++i) {
    Place place = {};
    std::memcpy(&place, bytes.data() + kHeaderSize + i * kPlaceSize, sizeof place);
    if (place.sequence % 2 != 0 || place.size > place.state.size()) continue;
    if (place.checksum != place.sum()) continue;
    auto state = SavedState::decode({place.state.data(), static_cast<std::size_t>(place.size)});
    if (!state) continue;
    const auto& n = place.counts;
    records.push_back({.client = {.cookie = n[0], .taken = n[1], .given = n[2]},
                       .server = {.cookie = n[3], .taken = n[4], .given = n[5]},
                       .state = std::move(*state)});
  }
  return records;
}

}  // namespace vpfs::proxy
