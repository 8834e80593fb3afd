#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

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
  // The text cannot be read or parsed: this is the only error, whatever is added after it.
  void add_final(int line, std::string_view problem);
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
  // first line it is (see base/config_parts.h).
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

// A key that other systems use, and the key to use instead.
struct ConfigWord {
  std::string_view other;
  std::string_view instead;
};

// A checked view of one YAML mapping.
//
// The caller asks for every allowed key. A getter returns whether the key is present and valid;
// only then does it write `*value`. It reports invalid values into the ConfigErrors. The destructor
// reports each key that was not asked for as unknown and suggests the nearest known key, so one
// pass finds all errors of a file. Destroy children before looking at the errors. A key given twice
// is an error; the first one counts.
class ConfigReader {
 public:
  // Parses `text`. After a syntax error the reader reports nothing else and acts as an empty
  // mapping.
  ConfigReader(std::string_view text, ConfigErrors& errors) : ConfigReader(text, errors, {}) {}
  // The same of several files (see base/config_parts.h). Files beside the main one may have these
  // keys; their lists and mappings follow those of the files before.
  ConfigReader(std::string_view text, ConfigErrors& errors,
               std::span<const std::string_view> keys_of_parts);
  ConfigReader(ConfigReader&&) noexcept;
  ConfigReader& operator=(ConfigReader&&) = delete;
  ~ConfigReader();

  [[nodiscard]] bool has(std::string_view key);
  // Whether the key has exactly this scalar; reports nothing.
  [[nodiscard]] bool is(std::string_view key, std::string_view value);
  bool get(std::string_view key, std::string* value);
  bool get(std::string_view key, bool* value);
  bool get(std::string_view key, double* value, double least, double most);
  bool get(std::string_view key, std::uint64_t* value, std::uint64_t least, std::uint64_t most);
  bool get(std::string_view key, Bytes* value, Bytes least, Bytes most);
  bool get(std::string_view key, BytesPerSecond* value, BytesPerSecond least, BytesPerSecond most);
  bool get(std::string_view key, Duration* value, Duration least, Duration most);
  // A scalar or a list of scalars; an empty list is an error.
  bool get(std::string_view key, std::vector<std::string>* value);
  // Every key of a mapping with its scalar value, in file order; an empty mapping is an error.
  bool get(std::string_view key, std::vector<std::pair<std::string, std::string>>* value);
  // Whether the key is there with a single value; reports nothing.
  [[nodiscard]] bool is_scalar(std::string_view key);
  // One of `choices`; the error lists them. The range of the getters above is inclusive; the
  // largest value of the type as `most` means no upper limit.
  bool choose(std::string_view key, std::string* value, const std::vector<std::string>& choices);
  // Reports a missing key, unless this mapping itself is absent or not a mapping; require the
  // mapping in its parent.
  void require(std::string_view key);

  // Nothing more is read of this mapping, and its keys are not looked at.
  void finish_unread();

  // A nested mapping; an absent key gives an empty mapping that reports nothing.
  [[nodiscard]] ConfigReader child(std::string_view key);
  // Calls `each` for every mapping of a list, in file order. False if the key is absent or not a
  // list.
  bool for_each(std::string_view key, const std::function<void(ConfigReader&)>& each);
  // Each `name: {mapping}` of a mapping of mappings, in file order.
  bool for_each_named(std::string_view key,
                      const std::function<void(const std::string&, ConfigReader&)>& each);
  // All keys of this mapping, in file order (does not mark them as known).
  [[nodiscard]] std::vector<std::string> keys() const;

  // Makes the error about the unknown key `other_word` propose `instead`.
  void suggest(std::string_view other_word, std::string_view instead);
  void suggest(std::span<const ConfigWord> words);
  // Reports unknown keys now instead of at the end; no key may be asked for after it.
  void finish();
  // Whether nothing has been reported since this reader was made.
  [[nodiscard]] bool flawless() const;

  // Reports a problem that only the caller can see, such as two contradictory values. The line is
  // that of the key if present, else of the mapping. The key may be an item of a list: "dial[1]".
  void report(std::string_view key, std::string_view problem);
  [[nodiscard]] int line() const;
  // Where another line of the text is, for a message about this mapping: "on line 7" or "in
  // FILE:7".
  [[nodiscard]] std::string place(int line) const;

 private:
  struct State;
  explicit ConfigReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vpfs
