#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vpfs {

// One mistake of a configuration text.
struct ConfigProblem {
  std::string key;  // the whole path; "": the text as a whole
  std::string text;
};

// Everything wrong with one configuration text, and beside it warnings, each as "FILE:LINE: KEY:
// what is wrong". KEY is the whole path ("scheduler.depth.bytes", "rules[0].match", lists counted
// from 0); it is left out where the text as a whole is wrong, and line 0 where there is no text.
class ConfigErrors {
 public:
  explicit ConfigErrors(std::string file) : file_(std::move(file)), parts_{{1, file_}} {}
  void add(int line, std::string_view key, std::string_view problem);
  // The text cannot be read or parsed, or nothing else of it can be judged: this is the only error,
  // whatever was added before and is added after it.
  void add_final(int line, std::string_view problem, std::string_view key = "");
  // For checks after reading. The line is that of `key` (its whole path), else that of the mapping
  // around it.
  void add(std::string_view key, std::string_view problem) { add(line_of(key), key, problem); }
  // Warns of something allowed that is probably a mistake.
  void warn(std::string_view key, std::string_view text);

  [[nodiscard]] const std::string& file() const { return file_; }
  // Whether there is no error; warnings do not count.
  [[nodiscard]] bool empty() const { return errors_.lines.empty(); }
  // Sorted by line number, then in the order of reporting.
  [[nodiscard]] const std::vector<std::string>& lines() const { return errors_.lines; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_.lines; }
  // The same as lines(), in parts.
  [[nodiscard]] const std::vector<ConfigProblem>& problems() const { return errors_.problems; }
  // lines() as one text, each ended by a newline.
  [[nodiscard]] std::string to_string() const;

  // The same of another file, where nothing of it could be read.
  void add_about(std::string_view file, std::string_view problem);
  void warn_about(std::string_view file, std::string_view text);

  // For ConfigReader: records the line of a key, by its whole path.
  void set_line(std::string path, int line) { places_.insert_or_assign(std::move(path), line); }
  [[nodiscard]] int line_of(std::string_view path) const;
  // The lines of the text from this one on, up to that of the next call, are those of `file`, whose
  // first line it is (see base/config/parts.h).
  void begin_file(int first_line, std::string file);
  // "on line 7", or "in FILE:7" if that is not the file of the line `from`.
  [[nodiscard]] std::string place(int line, int from) const;

 private:
  struct Messages {
    std::vector<std::string> lines;
    std::vector<ConfigProblem> problems;
    std::vector<int> numbers;
  };
  struct Part {
    int first_line;
    std::string file;
    bool operator==(const Part&) const = default;
  };
  [[nodiscard]] const Part& part_of(int line) const;
  static void append(Messages& messages, std::string_view file, std::string_view text);
  void insert(Messages& messages, int line, std::string_view key, std::string_view text) const;

  std::string file_;
  std::vector<Part> parts_;  // in the order of their lines
  Messages errors_;
  Messages warnings_;
  std::map<std::string, int, std::less<>> places_;
  bool final_ = false;
};

}  // namespace vpfs
