// Explain: finds what was asked for, takes the written words from the shipped files and fills gaps from the tables.
// See the header. Not here: the words themselves (lib/Catalog/explain).
#include "shardc/Emit/Explain.h"
#include "shardc/Emit/Report.h"
#include "shardc/Frontend/Catalog.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

llvm::StringRef topicName(Topic t) {
  switch (t) {
  case Topic::Diagnostic:
    return "diagnostic";
  case Topic::Operation:
    return "operation";
  case Topic::Change:
    return "change";
  }
  return "";
}

namespace {

std::string changeName(const ChangeRow &row) { return (stateName(row.from) + "->" + stateName(row.to)).str(); }

// The message of a row with its holes as dots: "`...` is given twice".
std::string messageShape(llvm::StringRef text) {
  std::string shape;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && text.find('}', i) != llvm::StringRef::npos) {
      i = text.find('}', i);
      shape += "...";
    } else {
      shape += text[i];
    }
  }
  return shape;
}

llvm::StringRef severityWhy(Severity s) {
  switch (s) {
  case Severity::Note:
    return "It is information; nothing is wrong.";
  case Severity::Warning:
    return "The job runs and computes what one device would, but probably not as meant.";
  case Severity::Error:
    return "The job would fail, or compute something else than one device would, so it is refused.";
  }
  return "";
}

Explanation fromRow(Diag id) {
  const DiagInfo &info = diagInfo(id);
  Explanation e;
  e.topic = Topic::Diagnostic;
  e.name = diagName(id);
  e.what = messageShape(info.text);
  e.why = severityWhy(info.severity).str();
  return e;
}

std::string linearText(const OpInfo &info) {
  std::vector<std::string> operands;
  for (uint32_t i = 0; i < 32; ++i) {
    if (i < info.maxOperands && (info.linear.operands >> i & 1)) {
      operands.push_back(std::to_string(i + 1));
    }
  }
  const std::string list = llvm::join(operands, ", ");
  switch (info.linear.kind) {
  case Linearity::None:
    return "It is not linear: a partial operand must be reduced first.";
  case Linearity::Alone:
    return "It is linear in operand " + list + " alone: that one may be partial while the others are replicated.";
  case Linearity::Increasing:
    return "It is increasing in operand " + list + ": that one may be a partial maximum or minimum.";
  case Linearity::Together:
    return "It is linear in operands " + list + " together: all of them may be partial, never only some.";
  }
  return "";
}

Explanation fromRow(const OpInfo &info) {
  Explanation e;
  e.topic = Topic::Operation;
  e.name = info.name.str();
  e.what = info.brief.str();
  e.why = info.rule.empty() ? "Its types follow from its arguments." : ("Sharding rule: " + info.rule + ".").str();
  e.why += " " + linearText(info);
  return e;
}

Explanation fromRow(const ChangeRow &row) {
  constexpr int64_t ranks = 8;
  constexpr int64_t local = 8 << 20;
  Explanation e;
  e.topic = Topic::Change;
  e.name = changeName(row);
  const llvm::StringRef primitive = primitiveName(row.primitive);
  e.what =
      (stateName(row.from) + " becomes " + stateName(row.to) + ": " + (primitive.empty() ? "nothing is done to the data" : primitive) + ".")
          .str();
  if (row.gradient) {
    const ChangeRow *back = findChange(row.gradient->first, row.gradient->second);
    const llvm::StringRef how = back ? primitiveName(back->primitive) : "";
    e.why = ("The gradient goes " + stateName(row.gradient->first) + " -> " + stateName(row.gradient->second) + ": " +
             (how.empty() ? "nothing to do" : how) + (row.gradientOverN ? ", divided by the number of ranks." : "."))
                .str();
  } else {
    e.why = "No gradient passes through it.";
  }
  const Cost cost = row.cost(ranks, local);
  e.example = cost.bytes == 0 ? "Free: no message is sent."
                              : "Over 8 ranks with 8.0 MiB each, every rank sends " + bytesText(cost.bytes) + " in " +
                                    std::to_string(cost.steps) + " steps.";
  return e;
}

// Fills in what the shipped file says about `e`; a field that it does not have stays as the table made it.
void addWritten(Explanation &e, DiagnosticEngine &diags) {
  const std::string path = ("explain/" + topicName(e.topic) + "s.yaml").str();
  const CatalogFile *file = catalogFile(path);
  if (!file) {
    return;
  }
  const FileId id = diags.sources().add(path, file->text.str());
  const std::optional<ConfigNode> root = parseConfig(id, diags, ConfigFormat::Yaml);
  const ConfigNode *entry = root ? root->find(e.name) : nullptr;
  if (!entry) {
    return;
  }
  const auto take = [&](llvm::StringRef key, std::string &field) {
    const ConfigNode *node = entry->find(key);
    if (node && node->kind == ConfigNode::Kind::Scalar) {
      field = llvm::StringRef(node->scalar).rtrim().str();
    }
  };
  take("what", e.what);
  take("why", e.why);
  take("example", e.example);
  take("mend", e.mend);
}

// "P@tp -> S(0)@tp", "P:S", "p->s(T)" -> "P->S"; "" if it is no change. Shells take `>` for themselves, hence `:`.
std::string normalizeChange(llvm::StringRef text) {
  const auto end = [](llvm::StringRef part) -> std::string {
    part = part.split('@').first.trim();
    const std::string upper = part.upper();
    if (llvm::StringRef(upper).starts_with("S(") && part.ends_with(")")) {
      return "S";
    }
    for (State s : {State::R, State::I, State::V, State::P, State::PAvg, State::PMax, State::PMin, State::S}) {
      if (stateName(s).equals_insensitive(part)) {
        return stateName(s).str();
      }
    }
    return "";
  };
  const llvm::StringRef arrow = text.contains("->") ? "->" : ":";
  const auto [from, to] = text.split(arrow);
  const std::string a = end(from);
  const std::string b = end(to);
  return a.empty() || b.empty() ? "" : a + "->" + b;
}

} // namespace

std::vector<std::pair<Topic, std::string>> explainable() {
  std::vector<std::pair<Topic, std::string>> names;
  for (size_t i = 0; i < allDiags().size(); ++i) {
    names.emplace_back(Topic::Diagnostic, diagName(static_cast<Diag>(i)));
  }
  for (const OpInfo &info : allOps()) {
    names.emplace_back(Topic::Operation, info.name.str());
  }
  for (const ChangeRow &row : changeRows()) {
    names.emplace_back(Topic::Change, changeName(row));
  }
  return names;
}

std::vector<Explanation> explain(llvm::StringRef name, DiagnosticEngine &diags) {
  llvm::StringRef asked = name.trim();
  if (asked.starts_with("[") && asked.ends_with("]")) {
    asked = asked.drop_front().drop_back(); // as diagnostics print their names
  }
  std::vector<Explanation> found;
  for (size_t i = 0; i < allDiags().size(); ++i) {
    const auto id = static_cast<Diag>(i);
    if (diagName(id) == asked || allDiags()[i].enumerator == asked) {
      found.push_back(fromRow(id));
    }
  }
  if (const std::optional<OpKind> op = findOp(asked)) {
    found.push_back(fromRow(opInfo(*op)));
  }
  const std::string change = normalizeChange(asked);
  for (const ChangeRow &row : changeRows()) {
    // A primitive's name stands for all changes that it makes.
    if (changeName(row) == change || (!asked.empty() && primitiveName(row.primitive) == asked)) {
      found.push_back(fromRow(row));
    }
  }
  for (Explanation &e : found) {
    addWritten(e, diags);
  }
  return found;
}

std::string nearestExplainable(llvm::StringRef name) {
  const std::vector<std::pair<Topic, std::string>> all = explainable();
  std::vector<llvm::StringRef> names;
  for (const auto &[topic, text] : all) {
    names.push_back(text);
  }
  return nearest(name, names).str();
}

} // namespace shardc
