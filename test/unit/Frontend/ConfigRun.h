// ConfigRun: reads a text as a config and puts tree, places and findings into words that a test can state.
#pragma once

#include "shardc/Frontend/Config.h"

namespace shardc {

struct ConfigRun {
  SourceManager sources;
  DiagnosticEngine diags{sources};
  std::optional<ConfigNode> root;

  ConfigRun(llvm::StringRef text, ConfigFormat format, llvm::StringRef name = "a.file") {
    root = parseConfig(sources.add(name.str(), text.str()), diags, format);
  }

  std::string place(SourceRange r) const {
    const LineColumn begin = sources.lineColumn(r.file, r.begin);
    const LineColumn end = sources.lineColumn(r.file, r.end);
    return std::to_string(begin.line) + ":" + std::to_string(begin.column) + "-" +
           (end.line == begin.line ? "" : std::to_string(end.line) + ":") + std::to_string(end.column);
  }

  // `{key: value, ...}`, `[item, ...]`, `'quoted'`, `plain`, `null`; a line break is shown as `/`.
  static std::string shape(const ConfigNode &node) {
    std::string out;
    switch (node.kind) {
    case ConfigNode::Kind::Null:
      return "null";
    case ConfigNode::Kind::Scalar:
      for (const char c : node.scalar) {
        out += c == '\n' ? '/' : c;
      }
      return node.quoted ? "'" + out + "'" : out;
    case ConfigNode::Kind::Sequence:
      for (const ConfigNode &item : node.items) {
        out += (out.empty() ? "" : ", ") + shape(item);
      }
      return "[" + out + "]";
    case ConfigNode::Kind::Mapping:
      for (const auto &[key, value] : node.entries) {
        out += (out.empty() ? "" : ", ") + key.value + ": " + shape(value);
      }
      return "{" + out + "}";
    }
    return out;
  }
  std::string shape() const { return root ? shape(*root) : "nothing"; }

  // The places of a node and, indented by nothing, of all below it in order: keys as `key@place`, nodes as `@place`.
  std::string places(const ConfigNode &node) const {
    std::string out = "@" + place(node.range);
    for (const ConfigNode &item : node.items) {
      out += " " + places(item);
    }
    for (const auto &[key, value] : node.entries) {
      out += " " + key.value + "@" + place(key.range) + " " + places(value);
    }
    return out;
  }
  std::string places() const { return root ? places(*root) : "nothing"; }

  // "1:2-3 message [name]", one per line, without the last line break.
  std::string findings() const {
    std::string out;
    for (const Diagnostic &d : diags.all()) {
      out += (out.empty() ? "" : "\n") + (d.range.valid() ? place(d.range) + " " : "") + d.message + " [" + diagName(d.id) + "]";
    }
    return out;
  }
};

} // namespace shardc
