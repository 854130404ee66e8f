// ExplainText: explanations as text and as JSON. See Emit/Explain.h.
#include "shardc/Emit/Explain.h"
#include "shardc/Emit/Json.h"

namespace shardc {

namespace {

void writeSection(llvm::raw_ostream &out, llvm::StringRef title, llvm::StringRef text) {
  if (text.empty()) {
    return;
  }
  out << '\n' << title << ":\n";
  while (!text.empty()) {
    const auto [line, rest] = text.split('\n');
    if (!line.empty()) {
      out << "  " << line;
    }
    out << '\n';
    text = rest;
  }
}

} // namespace

void writeExplanationsText(llvm::raw_ostream &out, llvm::ArrayRef<Explanation> all) {
  for (size_t i = 0; i < all.size(); ++i) {
    const Explanation &e = all[i];
    out << (i ? "\n" : "") << e.name << " (" << topicName(e.topic) << ")\n";
    writeSection(out, "What", e.what);
    writeSection(out, "Why", e.why);
    writeSection(out, "Example", e.example);
    writeSection(out, "Mend", e.mend);
  }
}

void writeExplanationsJson(llvm::raw_ostream &out, llvm::ArrayRef<Explanation> all) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attributeArray("explanations", [&] {
      for (const Explanation &e : all) {
        json.object([&] {
          json.attribute("topic", topicName(e.topic));
          json.attribute("name", e.name);
          json.attribute("what", jsonText(e.what));
          json.attribute("why", jsonText(e.why));
          json.attribute("example", jsonText(e.example));
          json.attribute("mend", jsonText(e.mend));
        });
      }
    });
  });
  out << '\n';
}

void writeExplainableText(llvm::raw_ostream &out) {
  std::optional<Topic> last;
  for (const auto &[topic, name] : explainable()) {
    if (last != topic) {
      out << (last ? "\n" : "") << topicName(topic) << "s\n";
      last = topic;
    }
    out << "  " << name << '\n';
  }
}

void writeExplainableJson(llvm::raw_ostream &out) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attributeArray("names", [&] {
      for (const auto &[topic, name] : explainable()) {
        json.object([&, itsTopic = topic, &itsName = name] {
          json.attribute("topic", topicName(itsTopic));
          json.attribute("name", itsName);
        });
      }
    });
  });
  out << '\n';
}

} // namespace shardc
