#include "tools/load/filler.h"

#include <cerrno>
#include <random>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace vpfs::load {
namespace {

std::vector<std::byte> noise(std::size_t size) {
  std::mt19937_64 random(size);
  std::vector<std::byte> bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Filler::Filler(int descriptor, std::vector<std::byte> memory)
    : descriptor_(descriptor), memory_(std::move(memory)) {}

Filler::Filler(Filler&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), memory_(std::move(other.memory_)) {}

Filler::~Filler() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<Filler> Filler::make(std::size_t size) {
  const int descriptor = ::memfd_create("vpfs-load", MFD_CLOEXEC);
  Filler filler(descriptor, noise(kLargestFromMemory));
  const std::vector<std::byte>& block = filler.memory_;
  for (std::size_t at = 0; descriptor >= 0 && at < size; at += block.size()) {
    if (!write_all(descriptor, block)) break;
    if (at + block.size() >= size) return filler;
  }
  const std::error_code error(errno, std::system_category());
  return fail("cannot make the data to write: " + error.message(), error);
}

}  // namespace vpfs::load
