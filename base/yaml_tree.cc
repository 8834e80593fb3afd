#include "base/yaml_tree.h"

#include <cstddef>
#include <map>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace vpfs {

// Makes nodes of the first document's events, and notes where the second one begins.
class YamlTree::Builder final : public YAML::EventHandler {
 public:
  Builder(YamlTree& tree, int first_line) : tree_(tree), first_line_(first_line) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 2) tree_.second_document_ = mark.line + first_line_;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(YamlNode::Kind::null, mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    if (YamlNode* const node = add(YamlNode::Kind::scalar, mark, anchor)) node->scalar = value;
  }
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t anchor) override {
    if (documents_ == 1) place(*anchors_.at(anchor));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(YamlNode::Kind::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(YamlNode::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  YamlNode* add(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (documents_ > 1) return nullptr;
    YamlNode& node = tree_.nodes_.emplace_back();
    node.kind = kind;
    node.line = mark.line + first_line_;
    if (anchor != YAML::NullAnchor) anchors_.insert_or_assign(anchor, &node);
    place(node);
    return &node;
  }
  void place(const YamlNode& node) {
    if (open_.empty()) {
      tree_.root_ = &node;
    } else {
      open_.back()->children.push_back(&node);
    }
  }
  void open(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (YamlNode* const node = add(kind, mark, anchor)) open_.push_back(node);
  }
  void close() {
    if (documents_ == 1) open_.pop_back();
  }

  YamlTree& tree_;
  int first_line_;
  std::size_t documents_ = 0;
  std::vector<YamlNode*> open_;  // the last one is the innermost
  std::map<YAML::anchor_t, const YamlNode*> anchors_;
};

std::shared_ptr<const YamlTree> YamlTree::parse(const std::string& text, int first_line) {
  const auto tree = std::make_shared<YamlTree>();
  std::istringstream input(text);
  YAML::Parser parser(input);
  Builder builder(*tree, first_line);
  if (parser.HandleNextDocument(builder)) (void)parser.HandleNextDocument(builder);
  if (tree->root_ == nullptr) tree->root_ = &tree->nodes_.emplace_back();
  return tree;
}

}  // namespace vpfs
