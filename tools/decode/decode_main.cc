#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "tools/decode/capture_decoder.h"
#include "tools/decode/pcap_reader.h"

namespace {

struct Options {
  std::vector<std::string> files;
  std::vector<std::uint16_t> ports;
  bool quiet = false;
  bool verbose = false;
};

void print_line(const vpfs::CaptureDecoder::Line& line) {
  if (line.entry == nullptr) {
    std::printf("# conn %zu: %s\n", line.connection, line.about.c_str());
    return;
  }
  const double seconds = std::chrono::duration<double>(line.time).count();
  const char* arrow = line.entry->from == vpfs::Sender::client ? "->" : "<-";
  std::printf("%10.6f c%zu %s %s\n", seconds, line.connection, arrow, line.entry->line.c_str());
  if (!line.entry->details.empty()) std::printf("      %s\n", line.entry->details.c_str());
}

void print_totals(const vpfs::CaptureTotals& totals) {
  std::string messages;
  for (const auto& [kind, count] : totals.messages) {
    messages += (messages.empty() ? "" : ", ") + kind + "=" + std::to_string(count);
  }
  const auto bytes = static_cast<double>(totals.stream_bytes);
  const double percent =
      totals.stream_bytes == 0 ? 0.0 : 100.0 * static_cast<double>(totals.decoded_bytes) / bytes;
  std::printf("# messages: %s\n", messages.c_str());
  std::printf("# stream bytes %s, decoded %s (%.3f%%), errors %s, connections %s\n",
              std::to_string(totals.stream_bytes).c_str(),
              std::to_string(totals.decoded_bytes).c_str(), percent,
              std::to_string(totals.faults).c_str(), std::to_string(totals.connections).c_str());
}

// Prints the contents of the file; returns whether all of it was decoded.
bool decode_file(const std::string& path, const Options& options) {
  auto reader = vpfs::PcapReader::open(path);
  if (!reader) {
    std::fprintf(stderr, "vpfs-decode: %s\n", reader.error().message.c_str());
    return false;
  }
  const auto report = [&](const vpfs::CaptureDecoder::Line& line) {
    if (!options.quiet || line.fault) print_line(line);
  };
  vpfs::CaptureDecoder decoder(
      {.ports = {options.ports.begin(), options.ports.end()}, .details = options.verbose}, report);
  bool whole = true;
  std::uint64_t cut = 0;
  for (;;) {
    const auto packet = reader->next();
    if (!packet) {
      std::fprintf(stderr, "vpfs-decode: %s\n", packet.error().message.c_str());
      whole = false;
      break;
    }
    const auto& next = *packet;
    if (!next) break;
    if (next->cut) ++cut;
    decoder.add(reader->link_type(), *next);
  }
  if (cut > 0) {
    std::fprintf(stderr,
                 "vpfs-decode: %s: %s packets were cut short by the capture (snap length)\n",
                 path.c_str(), std::to_string(cut).c_str());
  }
  const vpfs::CaptureTotals totals = decoder.finish();
  print_totals(totals);
  if (totals.stream_bytes == 0) {
    std::fprintf(stderr, "vpfs-decode: %s: no TCP data in the capture\n", path.c_str());
  }
  return whole && totals.ok() && totals.stream_bytes > 0;
}

int run(int argc, char** argv) {
  Options options;
  vpfs::OptionParser app{
      "Prints the messages of packet captures, one line each. Exits with 0 when every byte of "
      "every TCP stream was decoded, with 1 when something was not or a file cannot be read, with "
      "2 when the command line is wrong."};
  app.add_option("FILE", options.files,
                 "captures: pcap or pcapng, compressed with gzip or not; required");
  app.add_flag("-q,--quiet", options.quiet, "print faults and totals only");
  app.add_flag("-v,--verbose", options.verbose, "print every field of every message");
  app.add_option("--ports", options.ports, "look only at connections with one of these ports")
      .value_name("PORTS")
      .separated_by_commas()
      .one_value_each_time();
  if (const auto code = app.parse("vpfs-decode", argc, argv)) return *code;
  if (options.files.empty()) return app.missing("FILE");
  bool ok = true;
  for (const std::string& path : options.files) {
    if (options.files.size() > 1) std::printf("## %s\n", path.c_str());
    ok = decode_file(path, options) && ok;
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return vpfs::exit_after_output("vpfs-decode", run(argc, argv));
  } catch (const std::exception& problem) {
    std::fputs("vpfs-decode: ", stderr);
    std::fputs(problem.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
