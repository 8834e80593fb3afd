#pragma once

#include <optional>
#include <sstream>
#include <string>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace vpfs {

// The line, counted from 1, where the second document of a YAML text begins; nothing if there is at
// most one. It parses two documents at most: YAML::LoadAll() never ends on some texts, such as ",".
// Throws what YAML::Load() throws.
[[nodiscard]] inline std::optional<int> second_document_line(const std::string& text) {
  struct Starts final : YAML::EventHandler {
    int line = 0;

    void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}
  };
  std::istringstream input(text);
  YAML::Parser parser(input);
  Starts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return std::nullopt;
  return starts.line;
}

}  // namespace vpfs
