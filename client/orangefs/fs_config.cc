#include "client/orangefs/fs_config.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "client/orangefs/mount_address.h"

namespace vpfs::client {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The first word of `*text`, which loses it.
std::string_view take_word(std::string_view* text) {
  *text = trim(*text);
  const std::size_t end = std::min(text->find_first_of(kBlank), text->size());
  const std::string_view word = text->substr(0, end);
  *text = trim(text->substr(end));
  return word;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (const std::string_view part = trim(text.substr(0, end)); !part.empty()) {
      parts.push_back(part);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Section and option names are case-insensitive.
bool same(std::string_view a, std::string_view b) {
  const auto equal = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

template <typename Number>
bool parse_number(std::string_view text, Number* value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return problem == std::errc{} && end == text.data() + text.size();
}

// Reads the text line by line. Sections nest: <Defaults>, <Aliases>, <FileSystem> with ranges,
// distribution and hints inside, <ServerOptions>.
class Parser {
 public:
  Parser(std::string_view file_system, std::string_view scheme)
      : wanted_(file_system), scheme_(scheme) {}

  Result<FsConfig> parse(std::string_view text);

 private:
  struct Ranges {
    std::string alias;
    std::vector<orangefs::HandleExtent> extents;
  };
  struct FileSystem {
    FsConfig config;
    std::vector<Ranges> meta;
    std::vector<Ranges> data;
  };

  [[nodiscard]] Result<void> line(std::string_view text);
  [[nodiscard]] Result<void> section(std::string_view text);
  [[nodiscard]] Result<void> option(std::string_view key, std::string_view value);
  [[nodiscard]] Result<void> file_system_option(std::string_view key, std::string_view value);
  [[nodiscard]] Result<void> distribution_option(std::string_view key, std::string_view value);
  [[nodiscard]] Result<void> alias(std::string_view value);
  [[nodiscard]] Result<void> range(std::string_view value, std::vector<Ranges>* into);
  [[nodiscard]] Result<FsConfig> finish();
  [[nodiscard]] Result<void> place(
      const std::vector<Ranges>& ranges, FsConfig* config,
      std::vector<orangefs::HandleExtent> FsConfig::Server::*into) const;
  template <typename Number>
  [[nodiscard]] Result<void> number(std::string_view key, std::string_view text, Number* value);
  [[nodiscard]] Result<void> seconds(std::string_view key, std::string_view text, Duration* value);

  [[nodiscard]] bool inside(std::string_view name) const {
    return !sections_.empty() && same(sections_.back(), name);
  }
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view problem) const {
    return fail(fmt::format("file system configuration, line {}: {}", line_number_, problem));
  }

  std::string_view wanted_;
  std::string_view scheme_;
  int line_number_ = 0;
  std::vector<std::string> sections_;
  std::map<std::string, std::vector<std::string>, std::less<>> aliases_;  // to their addresses
  FsConfig defaults_;
  std::vector<FileSystem> file_systems_;
  std::string distribution_parameter_;
};

Result<FsConfig> Parser::parse(std::string_view text) {
  while (!text.empty()) {
    ++line_number_;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    content = trim(content.substr(0, content.find('#')));
    if (content.empty()) continue;
    if (Result<void> good = line(content); !good) return std::unexpected(std::move(good.error()));
  }
  if (!sections_.empty()) return wrong(fmt::format("<{}> is not closed", sections_.back()));
  return finish();
}

Result<void> Parser::line(std::string_view text) {
  if (text.front() == '<') return section(text);
  const std::string_view key = take_word(&text);
  return option(key, text);
}

Result<void> Parser::section(std::string_view text) {
  if (text.back() != '>') return wrong(fmt::format("'{}' has no '>'", text));
  const std::string_view name = trim(text.substr(1, text.size() - 2));
  if (!name.starts_with('/')) {
    sections_.emplace_back(name);
    if (same(name, "FileSystem")) file_systems_.emplace_back();
    return {};
  }
  if (!inside(name.substr(1))) return wrong(fmt::format("<{}> closes nothing", name));
  sections_.pop_back();
  return {};
}

Result<void> Parser::option(std::string_view key, std::string_view value) {
  if (inside("Aliases") && same(key, "Alias")) return alias(value);
  if (inside("Defaults")) {
    if (same(key, "ClientJobBMITimeoutSecs")) return seconds(key, value, &defaults_.job_timeout);
    if (same(key, "ClientJobFlowTimeoutSecs")) return seconds(key, value, &defaults_.flow_timeout);
    if (same(key, "ClientRetryLimit")) return number(key, value, &defaults_.retry_limit);
    if (same(key, "ClientRetryDelayMilliSecs")) {
      std::uint32_t delay = 0;
      if (Result<void> good = number(key, value, &delay); !good) return good;
      defaults_.retry_delay = std::chrono::milliseconds(delay);
    }
    return {};
  }
  if (file_systems_.empty()) return {};
  if (inside("MetaHandleRanges") && same(key, "Range"))
    return range(value, &file_systems_.back().meta);
  if (inside("DataHandleRanges") && same(key, "Range"))
    return range(value, &file_systems_.back().data);
  if (inside("FileSystem")) return file_system_option(key, value);
  if (inside("Distribution")) return distribution_option(key, value);
  return {};
}

Result<void> Parser::file_system_option(std::string_view key, std::string_view value) {
  FsConfig& config = file_systems_.back().config;
  if (same(key, "Name")) config.name = value;
  if (same(key, "ID")) {
    // Written as a signed or an unsigned number of 32 bits.
    std::int64_t id = 0;
    if (Result<void> good = number(key, value, &id); !good) return good;
    config.fs_id = static_cast<orangefs::FsId>(static_cast<std::uint32_t>(id));
  }
  if (same(key, "RootHandle")) return number(key, value, &config.root);
  if (same(key, "DefaultNumDFiles")) return number(key, value, &config.default_datafiles);
  if (same(key, "FlowBufferSizeBytes")) {
    if (Result<void> good = number(key, value, &config.flow_buffer_size); !good) return good;
    if (config.flow_buffer_size == 0 || config.flow_buffer_size > orangefs::kMaxMessageSize) {
      return wrong("FlowBufferSizeBytes must be from 1 to 16777216");
    }
  }
  return {};
}

Result<void> Parser::distribution_option(std::string_view key, std::string_view value) {
  if (same(key, "Param")) distribution_parameter_ = value;
  if (!same(key, "Value") || distribution_parameter_ != "strip_size") return {};
  FsConfig& config = file_systems_.back().config;
  if (Result<void> good = number(key, value, &config.strip_size); !good) return good;
  if (config.strip_size <= 0) return wrong("strip_size must be positive");
  return {};
}

Result<void> Parser::alias(std::string_view value) {
  const std::string_view name = take_word(&value);
  if (name.empty() || value.empty()) return wrong("Alias needs a name and an address");
  std::vector<std::string>& addresses = aliases_[std::string(name)];
  for (const std::string_view address : split(value, ',')) addresses.emplace_back(address);
  return {};
}

// "s0 3-100,200-300".
Result<void> Parser::range(std::string_view value, std::vector<Ranges>* into) {
  Ranges ranges;
  ranges.alias = take_word(&value);
  for (const std::string_view part : split(value, ',')) {
    const std::size_t dash = part.find('-');
    orangefs::HandleExtent extent;
    const bool good =
        parse_number(trim(part.substr(0, dash)), &extent.first) &&
        (dash == std::string_view::npos ? parse_number(part, &extent.last)
                                        : parse_number(trim(part.substr(dash + 1)), &extent.last));
    if (!good || extent.last < extent.first) {
      return wrong(fmt::format("'{}' is not a range of handles", part));
    }
    ranges.extents.push_back(extent);
  }
  if (ranges.alias.empty() || ranges.extents.empty()) {
    return wrong("Range needs an alias and handles");
  }
  into->push_back(std::move(ranges));
  return {};
}

template <typename Number>
Result<void> Parser::number(std::string_view key, std::string_view text, Number* value) {
  if (parse_number(text, value)) return {};
  return wrong(fmt::format("{}: '{}' is not a number that it can be", key, text));
}

Result<void> Parser::seconds(std::string_view key, std::string_view text, Duration* value) {
  std::uint32_t count = 0;
  if (Result<void> good = number(key, text, &count); !good) return good;
  *value = std::chrono::seconds(count);
  return {};
}

Result<FsConfig> Parser::finish() {
  const auto found =
      std::find_if(file_systems_.begin(), file_systems_.end(),
                   [this](const FileSystem& each) { return each.config.name == wanted_; });
  if (found == file_systems_.end()) {
    return fail(fmt::format("the servers have no file system '{}'", wanted_));
  }
  FsConfig config = std::move(found->config);
  config.job_timeout = defaults_.job_timeout;
  config.flow_timeout = defaults_.flow_timeout;
  config.retry_limit = defaults_.retry_limit;
  config.retry_delay = defaults_.retry_delay;
  for (const auto& [ranges, into] : {std::pair(&found->meta, &FsConfig::Server::meta),
                                     std::pair(&found->data, &FsConfig::Server::data)}) {
    if (Result<void> good = place(*ranges, &config, into); !good) {
      return std::unexpected(std::move(good.error()));
    }
  }
  if (!config.server_of(config.root)) {
    return fail(fmt::format("file system '{}': no server holds the root handle {}", config.name,
                            config.root));
  }
  return config;
}

Result<void> Parser::place(const std::vector<Ranges>& ranges, FsConfig* config,
                           std::vector<orangefs::HandleExtent> FsConfig::Server::*into) const {
  for (const Ranges& each : ranges) {
    auto server =
        std::find_if(config->servers.begin(), config->servers.end(),
                     [&](const FsConfig::Server& known) { return known.alias == each.alias; });
    if (server == config->servers.end()) {
      const auto addresses = aliases_.find(each.alias);
      if (addresses == aliases_.end()) {
        return fail(fmt::format("file system configuration: '{}' is no Alias", each.alias));
      }
      FsConfig::Server added{.alias = each.alias};
      for (const std::string& text : addresses->second) {
        const Result<ServerAddress> address = parse_server_address(text);
        if (address && address->scheme == scheme_) added.host_port = address->host_port;
      }
      if (added.host_port.empty()) {
        return fail(fmt::format("file system configuration: Alias {} has no {}:// address",
                                each.alias, scheme_));
      }
      server = config->servers.insert(config->servers.end(), std::move(added));
    }
    std::vector<orangefs::HandleExtent>& extents = (*server).*into;
    extents.insert(extents.end(), each.extents.begin(), each.extents.end());
  }
  return {};
}

}  // namespace

std::optional<std::size_t> FsConfig::server_of(orangefs::Handle handle) const {
  const auto holds = [handle](const std::vector<orangefs::HandleExtent>& extents) {
    return std::any_of(extents.begin(), extents.end(),
                       [handle](const orangefs::HandleExtent& extent) {
                         return extent.first <= handle && handle <= extent.last;
                       });
  };
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (holds(servers[i].meta) || holds(servers[i].data)) return i;
  }
  return std::nullopt;
}

Result<FsConfig> parse_fs_config(std::string_view text, std::string_view file_system,
                                 std::string_view scheme) {
  return Parser(file_system, scheme).parse(text);
}

}  // namespace vpfs::client
