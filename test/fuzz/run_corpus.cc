#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

// Stands in for libFuzzer in builds without it: runs a fuzz target over the files of a corpus and
// over seeded mutations of them.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr int kMutationsPerFile = 300;

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void mutate(Input& input, std::mt19937_64& random) {
  const auto any_offset = [&] { return static_cast<std::ptrdiff_t>(random() % input.size()); };
  for (auto changes = random() % 5 + 1; changes > 0 && !input.empty(); --changes) {
    const auto at = input.begin() + any_offset();
    switch (random() % 5) {
      case 0:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        *at = random() % 2 == 0 ? 0x00 : 0xff;
        break;
      case 2:
        *at ^= static_cast<std::uint8_t>(1U << random() % 8);
        break;
      case 3:
        input.erase(at, std::min(at + static_cast<std::ptrdiff_t>(random() % 16), input.end()));
        break;
      default:
        input.insert(at, random() % 16, static_cast<std::uint8_t>(random()));
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  std::mt19937_64 random(1);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry);
  std::ranges::sort(files);
  for (const auto& file : files) {
    const Input seed = read_file(file);
    LLVMFuzzerTestOneInput(seed.data(), seed.size());
    for (int i = 0; i < kMutationsPerFile; ++i) {
      Input input = seed;
      mutate(input, random);
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
  }
  std::printf("%zu files, %d mutations of each\n", files.size(), kMutationsPerFile);
  return files.empty() ? 1 : 0;
}
