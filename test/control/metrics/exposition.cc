#include "test/control/metrics/exposition.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace vpfs::test {
namespace {

bool is_name(std::string_view text, bool of_label) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) return false;
  return std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c == ':' && !of_label);
  });
}

// Takes a word up to a space.
std::string take_word(std::string_view& text) {
  const std::string word(text.substr(0, text.find(' ')));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

// A quoted value behind `"`, up to the closing quote.
std::optional<std::string> take_value(std::string_view& text) {
  std::string value;
  while (!text.empty() && text.front() != '"') {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\') {
      if (text.empty()) return std::nullopt;
      c = text.front();
      text.remove_prefix(1);
      if (c == 'n') {
        c = '\n';
      } else if (c != '\\' && c != '"') {
        return std::nullopt;
      }
    }
    value += c;
  }
  if (text.empty()) return std::nullopt;
  text.remove_prefix(1);
  return value;
}

class Reader {
 public:
  Exposition read(std::string_view text) {
    if (!text.ends_with('\n')) problem("the last line does not end");
    while (!text.empty()) {
      line_ = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line_.size() + 1));
      if (line_.starts_with('#')) {
        read_comment(line_);
      } else if (!line_.empty()) {
        read_sample(line_);
      }
    }
    for (const auto& [name, family] : found_.families) check(name, family);
    return found_;
  }

 private:
  void problem(const std::string& what) {
    found_.problems.push_back(what + ": " + std::string(line_));
  }

  void read_comment(std::string_view line) {
    if (take_word(line) != "#") return problem("no space behind #");
    const std::string kind = take_word(line);
    const std::string name = take_word(line);
    if (kind == "HELP") {
      if (found_.families.contains(name)) problem("a second HELP");
      found_.families[name].help = line;
    } else if (kind == "TYPE") {
      if (!found_.families.contains(name)) problem("TYPE before HELP");
      if (!found_.families[name].type.empty()) problem("a second TYPE");
      found_.families[name].type = line;
      current_ = name;
    } else {
      problem("neither HELP nor TYPE");
    }
  }

  void read_sample(std::string_view line) {
    const std::string name(line.substr(0, line.find_first_of("{ ")));
    line.remove_prefix(name.size());
    if (!is_name(name, false)) return problem("a bad name");
    Exposition::Labels labels;
    if (line.starts_with('{') && !read_labels(line, labels)) return problem("bad labels");
    if (!line.starts_with(' ')) return problem("no space before the value");
    line.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || end != line.data() + line.size()) return problem("a bad value");
    check_family(name);
    if (!found_.series[name].emplace(labels, value).second) problem("the same series again");
  }

  bool read_labels(std::string_view& line, Exposition::Labels& labels) {
    line.remove_prefix(1);
    while (!line.starts_with('}')) {
      const std::string name(line.substr(0, line.find('=')));
      line.remove_prefix(name.size());
      if (!is_name(name, true) || name.starts_with("__") || !line.starts_with("=\"")) return false;
      line.remove_prefix(2);
      const auto value = take_value(line);
      if (!value || !labels.emplace(name, *value).second) return false;
      if (line.starts_with(',')) {
        line.remove_prefix(1);
      } else if (!line.starts_with('}')) {
        return false;
      }
    }
    line.remove_prefix(1);
    return true;
  }

  // All lines of a metric are together, behind its TYPE.
  void check_family(const std::string& name) {
    if (name == current_) return;
    const bool of_summary = found_.families[current_].type == "summary" &&
                            (name == current_ + "_sum" || name == current_ + "_count");
    if (!of_summary) problem("not behind its TYPE");
  }

  void check(const std::string& name, const Exposition::Family& family) {
    line_ = name;
    if (family.help.empty()) problem("no help");
    if (family.type != "counter" && family.type != "gauge" && family.type != "summary") {
      problem("an unknown type");
    }
    if ((family.type == "counter") != name.ends_with("_total")) problem("_total is for counters");
    if (name.contains("_us") || name.contains("milli")) problem("no base unit");
    if (!found_.series.contains(name) && !found_.series.contains(name + "_sum")) {
      problem("no series");
    }
  }

  Exposition found_;
  std::string_view line_;
  std::string current_;
};

}  // namespace

double Exposition::value(const std::string& name, const Labels& labels) const {
  const auto found = series.find(name);
  if (found == series.end()) return std::numeric_limits<double>::quiet_NaN();
  const auto one = found->second.find(labels);
  return one == found->second.end() ? std::numeric_limits<double>::quiet_NaN() : one->second;
}

std::size_t Exposition::count(const std::string& name) const {
  const auto found = series.find(name);
  return found == series.end() ? 0 : found->second.size();
}

Exposition read_exposition(std::string_view text) {
  return Reader().read(text);
}

}  // namespace vpfs::test
