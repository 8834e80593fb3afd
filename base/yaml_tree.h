#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace vpfs {

// One value of a YAML text.
struct YamlNode {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  int line = 1;
  std::string scalar;
  // The items of a sequence, or the keys and values of a map in turn. They are in the same tree.
  std::vector<const YamlNode*> children;

  [[nodiscard]] bool is(Kind what) const { return kind == what; }
};

// The first document of a YAML text, read once.
//
// YAML::Load() makes a tree too. It takes several times as long for the same text, and does not say
// whether another document follows; YAML::LoadAll() never ends on some texts, such as ",".
class YamlTree {
 public:
  // Throws YAML::Exception if the text, or the beginning of its second document, is not YAML; its
  // line is within the text. Nodes count their lines from `first_line` on.
  [[nodiscard]] static std::shared_ptr<const YamlTree> parse(const std::string& text,
                                                             int first_line = 1);

  // Null if there is no document.
  [[nodiscard]] const YamlNode& root() const { return *root_; }
  // The line where the second document begins.
  [[nodiscard]] std::optional<int> second_document() const { return second_document_; }

 private:
  class Builder;

  std::deque<YamlNode> nodes_;
  const YamlNode* root_ = nullptr;
  std::optional<int> second_document_;
};

}  // namespace vpfs
