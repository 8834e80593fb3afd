#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <zlib.h>

// Stands in for libFuzzer in builds without it: runs a fuzz target over corpora, and then for some
// time over mutations of them that follow from a seed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Where there is a sanitizer: it calls this before it ends the program.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*)());

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kMostBytes = 4096;  // of a mutation
constexpr const char* kUsage =
    "usage: %s --seconds N --seed N --artifacts FILE CORPUS...\n"
    "A CORPUS is a file, a folder of files or a .tar.gz of files. FILE gets the input that ends "
    "the "
    "program.\n";

struct Options {
  double seconds = 0;
  std::uint64_t seed = 1;
  std::string artifact;
  std::vector<std::filesystem::path> corpora;
};

// What a handler of the program's end can reach.
Options options;
Input current;

void keep_input() {
  std::ofstream(options.artifact, std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()),
             static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "seed %llu; the input is in %s\n",
               static_cast<unsigned long long>(options.seed), options.artifact.c_str());
}

void run(const Input& input) {
  current = input;
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The files of a tar archive, compressed with gzip.
std::vector<Input> read_archive(const std::filesystem::path& path) {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kSizeField = 124;
  std::vector<Input> inputs;
  const gzFile file = gzopen(path.c_str(), "rb");
  std::array<char, kBlock> header = {};
  while (gzread(file, header.data(), kBlock) == static_cast<int>(kBlock) && header[0] != 0) {
    const std::size_t size = std::strtoul(&header[kSizeField], nullptr, 8);
    Input& input = inputs.emplace_back((size + kBlock - 1) / kBlock * kBlock);
    if (gzread(file, input.data(), static_cast<unsigned>(input.size())) !=
        static_cast<int>(input.size())) {
      std::fprintf(stderr, "%s: damaged\n", path.c_str());
      std::exit(2);
    }
    input.resize(size);
  }
  gzclose(file);
  return inputs;
}

std::vector<Input> read_corpus(const std::filesystem::path& path) {
  if (path.string().ends_with(".tar.gz")) return read_archive(path);
  if (!std::filesystem::is_directory(path)) return {read_file(path)};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry);
  }
  std::ranges::sort(files);
  std::vector<Input> inputs;
  for (const auto& file : files) inputs.push_back(read_file(file));
  return inputs;
}

void mutate(Input& input, const Input& other, std::mt19937_64& random) {
  const auto any_offset = [&](const Input& bytes) {
    return static_cast<std::ptrdiff_t>(random() % bytes.size());
  };
  for (auto changes = random() % 5 + 1; changes > 0 && !input.empty(); --changes) {
    const auto at = input.begin() + any_offset(input);
    switch (random() % 6) {
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
      case 4:
        input.insert(at, random() % 16, static_cast<std::uint8_t>(random()));
        break;
      default: {
        if (other.empty()) break;
        const auto from = other.begin() + any_offset(other);
        const auto size = std::min<std::ptrdiff_t>(other.end() - from,
                                                   static_cast<std::ptrdiff_t>(random() % 64));
        input.insert(at, from, from + size);
      }
    }
  }
  if (input.size() > kMostBytes) input.resize(kMostBytes);
}

[[nodiscard]] bool parse_options(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (!option.starts_with("--")) {
      options.corpora.emplace_back(option);
      continue;
    }
    if (++i == argc) return false;
    if (option == "--seconds") {
      options.seconds = std::atof(argv[i]);
    } else if (option == "--seed") {
      options.seed = std::strtoull(argv[i], nullptr, 10);
    } else if (option == "--artifacts") {
      options.artifact = argv[i];
    } else {
      return false;
    }
  }
  return !options.corpora.empty() && !options.artifact.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (!parse_options(argc, argv)) {
    std::fprintf(stderr, kUsage, argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  std::signal(SIGABRT, [](int) { keep_input(); });
  std::vector<Input> inputs;
  for (const auto& corpus : options.corpora) {
    for (Input& input : read_corpus(corpus)) inputs.push_back(std::move(input));
  }
  if (inputs.empty()) {
    std::fprintf(stderr, "%s: the corpora are empty\n", argv[0]);
    return 2;
  }
  for (const Input& input : inputs) run(input);
  std::mt19937_64 random(options.seed);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  std::uint64_t mutations = 0;
  for (; std::chrono::steady_clock::now() < end; ++mutations) {
    Input input = inputs[random() % inputs.size()];
    mutate(input, inputs[random() % inputs.size()], random);
    run(input);
  }
  std::printf("%zu inputs, then %llu mutations of them with seed %llu\n", inputs.size(),
              static_cast<unsigned long long>(mutations),
              static_cast<unsigned long long>(options.seed));
  return 0;
}
