#include "base/yaml_tree.h"

#include <gtest/gtest.h>
#include <yaml-cpp/exceptions.h>

namespace vpfs {
namespace {

// The tree as one line, with the line of each scalar.
std::string text_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return node.scalar + "@" + std::to_string(node.line);
    default:
      break;
  }
  const bool is_map = node.is(YamlNode::Kind::map);
  std::string text;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += is_map && i % 2 == 1 ? ": " : ", ";
    text += text_of(*node.children[i]);
  }
  return is_map ? "{" + text + "}" : "[" + text + "]";
}
std::string tree_of(const std::string& text) {
  return text_of(YamlTree::parse(text)->root());
}

TEST(YamlTree, HasWhatTheTextHasWithItsLines) {
  EXPECT_EQ(tree_of("a: 1\nb: {c: [x, 'y z'],\n  d: }\ne:\n- - f\n  - ~\n"),
            "{a@1: 1@1, b@2: {c@2: [x@2, y z@2], d@3: null}, e@4: [[f@5, null]]}");
  EXPECT_EQ(tree_of("a: 1\na: '~'\n"), "{a@1: 1@1, a@2: ~@2}") << "twice, as it is written";
}

TEST(YamlTree, AnAliasIsWhatItsAnchorIs) {
  EXPECT_EQ(tree_of("a: &x {b: 1}\nc: *x\nd: &x 2\ne: [*x]\nf: &y\ng: *y\n"),
            "{a@1: {b@1: 1@1}, c@2: {b@1: 1@1}, d@3: 2@3, e@4: [2@3], f@5: null, g@6: null}");
  EXPECT_THROW((void)YamlTree::parse("a: *unknown\n"), YAML::Exception);
}

TEST(YamlTree, ATextWithoutADocumentIsNull) {
  for (const char* text : {"", "\n", "# nothing\n", "---\n"}) EXPECT_EQ(tree_of(text), "null");
}

TEST(YamlTree, SaysWhereASecondDocumentBegins) {
  EXPECT_EQ(YamlTree::parse("a: 1\n")->second_document(), std::nullopt);
  const auto two = YamlTree::parse("a: &x 1\n---\nb: {c: &y [2]}\nd: *y\n");
  EXPECT_EQ(two->second_document(), 2);
  EXPECT_EQ(text_of(two->root()), "{a@1: 1@1}") << "it has the first one alone";
  EXPECT_EQ(YamlTree::parse("{a: 1} {b: 2}\n")->second_document(), 1);
}

TEST(YamlTree, TextThatIsNotYamlEnds) {
  for (const char* text : {"a: [1, 2\nb: 3\n", "a: 1\n---\nb: [\n", "{", "a: 'b"}) {
    EXPECT_THROW((void)YamlTree::parse(text), YAML::Exception) << text;
  }
  // YAML::LoadAll() never returns from this one.
  EXPECT_EQ(YamlTree::parse(",")->second_document(), 1);
  EXPECT_THROW((void)YamlTree::parse(std::string(100'000, '[')), YAML::Exception) << "too deep";
}

}  // namespace
}  // namespace vpfs
