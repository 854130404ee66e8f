// Diagnostics: draws a finding: the message, the line with what is meant underlined, labels, notes and helps.
//
//   moe.yaml:31:9: error: `shared` is partial over `tp` ... [add-mixes-layouts]
//      |
//   31 |   - y = add(routed, shared)
//      |         ^^^^^^^^^^^^^^^^^^^
//   24 |   - shared = linear(h, w2)
//      |              ------------- partial since this contraction
//      = help: reduce-scatter `shared` before the add
//              forward 2.0 MiB per rank
//
// The place stands before the message and not on a line `-->` of its own: terminals and editors jump to `file:line:column:`,
// and a search (or a test) finds place, message and name in one line. Labels in other files keep their `-->`.
//
// Lines come from files that may hold anything. What would move the cursor, change the colour or reverse the direction of
// writing is shown as its number, and a line longer than a terminal is cut around the place.
#include "shardc/Emit/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Unicode.h"
#include <algorithm>

namespace shardc {

namespace {
constexpr size_t MaxWidth = 120; // columns of a line of a file, with the gutter
constexpr size_t TabWidth = 4;
constexpr size_t MaxMessage = 4096; // bytes of a message; names in it can be as long as a file

constexpr llvm::StringLiteral Reset = "\x1b[0m";
constexpr llvm::StringLiteral Bold = "\x1b[1m";
constexpr llvm::StringLiteral Red = "\x1b[1;31m";
constexpr llvm::StringLiteral Yellow = "\x1b[1;33m";
constexpr llvm::StringLiteral Blue = "\x1b[1;34m";
constexpr llvm::StringLiteral Cyan = "\x1b[1;36m";

llvm::StringRef colourOf(Severity s) {
  switch (s) {
  case Severity::Note:
    return Cyan;
  case Severity::Warning:
    return Yellow;
  case Severity::Error:
    return Red;
  }
  return Reset;
}

// One character as it is drawn.
struct Cell {
  std::string text;
  size_t width;
  size_t byte; // where it begins in the line
};

// The bytes of the character at the front of `text`; 1 for what is no UTF-8.
size_t characterBytes(llvm::StringRef text) {
  const auto first = static_cast<unsigned char>(text.front());
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
  if (length > text.size()) {
    return 1;
  }
  const bool continued = llvm::all_of(text.slice(1, length), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; });
  return continued ? length : 1;
}

uint32_t codePoint(llvm::StringRef character) {
  const auto first = static_cast<unsigned char>(character.front());
  uint32_t code = character.size() == 1 ? first : first & (0xff >> (character.size() + 1));
  for (const char c : character.drop_front()) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  }
  return code;
}

// Printable characters as they are, others by number. A tab reaches to the next stop.
Cell drawn(llvm::StringRef character, size_t byte, size_t column) {
  if (character == "\t") {
    const size_t width = TabWidth - column % TabWidth;
    return {std::string(width, ' '), width, byte};
  }
  const int width = llvm::sys::unicode::columnWidthUTF8(character);
  if (width >= 0) {
    return {character.str(), static_cast<size_t>(width), byte};
  }
  const auto first = static_cast<unsigned char>(character.front());
  std::string number =
      character.size() == 1 ? llvm::formatv("\\x{0:x-2}", first).str() : llvm::formatv("<U+{0:X-4}>", codePoint(character)).str();
  const size_t length = number.size();
  return {std::move(number), length, byte};
}

std::vector<Cell> cellsOf(llvm::StringRef text, size_t firstByte) {
  std::vector<Cell> cells;
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = characterBytes(text.drop_front(at));
    cells.push_back(drawn(text.substr(at, bytes), firstByte + at, column));
    column += cells.back().width;
    at += bytes;
  }
  return cells;
}

// A text of one line from anywhere, harmless for a terminal.
std::string harmless(llvm::StringRef text) {
  std::string out;
  for (const Cell &c : cellsOf(text.take_front(MaxMessage), 0)) {
    out += c.text;
  }
  return text.size() > MaxMessage ? out + "..." : out;
}

class Renderer {
public:
  Renderer(llvm::raw_ostream &o, const SourceManager &s, bool c) : out(o), sources(s), colour(c) {}

  void render(const Diagnostic &d) {
    if (d.range.valid()) {
      out << paint(Bold, place(d.range) + ": ");
    }
    out << paint(colourOf(d.severity), severityName(d.severity)) << paint(Bold, ": " + harmless(d.message)) << " [" << diagName(d.id)
        << "]\n";
    gutter = gutterWidth(d);
    if (d.range.valid()) {
      bar();
      drawPrimary(d);
    }
    for (const auto &[range, text] : d.labels) {
      drawLabel(d, range, text);
    }
    for (const std::string &note : d.notes) {
      attach("", note);
    }
    for (const std::string &help : d.helps) {
      attach("help: ", help);
    }
    if (d.count > 1) {
      attach("", std::to_string(d.count) + " " + d.countNoun + " alike");
    }
  }

private:
  std::string paint(llvm::StringRef code, llvm::StringRef text) const { return colour ? (code + text + Reset).str() : text.str(); }

  std::string place(SourceRange range) const {
    const LineColumn at = sources.lineColumn(range.file, range.begin);
    return harmless(shownPath(sources.name(range.file))) + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  }

  uint32_t lineOf(SourceRange range) const { return sources.lineColumn(range.file, range.begin).line; }

  // All excerpts of one finding are drawn under each other.
  size_t gutterWidth(const Diagnostic &d) const {
    uint32_t line = d.range.valid() ? lineOf(d.range) : 1;
    for (const auto &[range, text] : d.labels) {
      line = range.valid() ? std::max(line, lineOf(range)) : line;
    }
    return std::max<size_t>(2, std::to_string(line).size());
  }

  void bar() { out << std::string(gutter + 1, ' ') << paint(Blue, "|") << "\n"; }

  void drawPrimary(const Diagnostic &d) {
    // What is said about the very place stands behind the carets.
    std::string text;
    for (const auto &[range, label] : d.labels) {
      if (range == d.range && text.empty()) {
        text = label;
      }
    }
    shownFile = d.range.file;
    shownLine = 0;
    excerpt(d.range, '^', colourOf(d.severity), text);
  }

  void drawLabel(const Diagnostic &d, SourceRange range, const std::string &text) {
    if (!range.valid()) {
      attach("", text);
      return;
    }
    const auto same = [&](const auto &label) { return label.first == d.range; };
    const auto first = std::find_if(d.labels.begin(), d.labels.end(), same);
    if (range == d.range && first->second == text) {
      return; // drawn with the carets
    }
    if (range.file != shownFile) {
      out << std::string(gutter, ' ') << paint(Blue, "-->") << " " << place(range) << "\n";
      bar();
      shownFile = range.file;
      shownLine = 0;
    }
    excerpt(range, '-', Blue, text);
  }

  // The first line of the range and what is said about it.
  void excerpt(SourceRange range, char mark, llvm::StringRef markColour, llvm::StringRef text) {
    const LineColumn at = sources.lineColumn(range.file, range.begin);
    const llvm::StringRef line = sources.line(range.file, at.line);
    const size_t begin = std::min<size_t>(at.column - 1, line.size());
    const size_t end = std::max(begin, std::min<size_t>(begin + (range.end - range.begin), line.rtrim().size()));
    const View view = viewOf(line, begin, end);
    if (shownLine != at.line) {
      const std::string number = std::to_string(at.line);
      out << std::string(gutter - number.size(), ' ') << paint(Blue, number + " |");
      out << (view.text.empty() ? "" : " ") << view.text << "\n";
      shownLine = at.line;
    }
    std::string under = std::string(view.marks, mark);
    if (!text.empty()) {
      under += " " + harmless(text);
    }
    out << std::string(gutter + 1, ' ') << paint(Blue, "|") << " " << std::string(view.indent, ' ') << paint(markColour, under) << "\n";
  }

  // A line as it is drawn, how far in the marks begin and how many there are.
  struct View {
    std::string text;
    size_t indent = 0;
    size_t marks = 0;
  };

  // Only what surrounds the place is looked at: a line can be as long as a file.
  View viewOf(llvm::StringRef line, size_t begin, size_t end) const {
    const size_t room = MaxWidth - gutter - 3;
    std::vector<Cell> cells;
    bool cutFront = false;
    bool cutBack = false;
    if (line.size() <= 4 * room) {
      cells = cellsOf(line, 0);
    }
    size_t width = 0;
    for (const Cell &c : cells) {
      width += c.width;
    }
    if (line.size() > 4 * room || width > room) {
      std::tie(cells, cutFront, cutBack) = cut(line, begin, room);
    }
    View view;
    view.text = cutFront ? "..." : "";
    size_t column = view.text.size();
    view.indent = column;
    for (const Cell &c : cells) {
      view.text += c.text;
      column += c.width;
      view.indent = c.byte < begin ? column : view.indent;
      view.marks += c.byte >= begin && c.byte < end ? c.width : 0;
    }
    view.text += cutBack ? "..." : "";
    view.marks = std::max<size_t>(view.marks, 1);
    view.text = llvm::StringRef(view.text).rtrim().str();
    return view;
  }

  // The part of a long line that has a third of its room before the place.
  static std::tuple<std::vector<Cell>, bool, bool> cut(llvm::StringRef line, size_t begin, size_t room) {
    size_t from = begin > room / 3 ? begin - room / 3 : 0;
    while (from != 0 && from < line.size() && (static_cast<unsigned char>(line[from]) & 0xc0) == 0x80) {
      ++from;
    }
    from = from < 3 ? 0 : from;
    std::vector<Cell> cells = cellsOf(line.substr(from, 4 * room), from);
    size_t width = from == 0 ? 0 : 3;
    size_t kept = 0;
    while (kept < cells.size() && width + cells[kept].width + 3 <= room) {
      width += cells[kept++].width;
    }
    const bool cutBack = kept < cells.size() || from + 4 * room < line.size();
    cells.resize(kept);
    return {std::move(cells), from != 0, cutBack};
  }

  // "   = help: text", further lines aligned under the first.
  void attach(llvm::StringRef head, llvm::StringRef text) {
    std::string indent = std::string(gutter + 1, ' ');
    auto [line, rest] = text.split('\n');
    out << indent << paint(Blue, "=") << " " << paint(Cyan, head) << harmless(line) << "\n";
    indent += std::string(2 + head.size(), ' ');
    while (!rest.empty()) {
      std::tie(line, rest) = rest.split('\n');
      out << indent << harmless(line) << "\n";
    }
  }

  llvm::raw_ostream &out;
  const SourceManager &sources;
  bool colour;
  size_t gutter = 2;
  // What stands above: a line is drawn once if the next label is on it too.
  FileId shownFile;
  uint32_t shownLine = 0;
};
} // namespace

llvm::StringRef severityName(Severity s) {
  switch (s) {
  case Severity::Note:
    return "note";
  case Severity::Warning:
    return "warning";
  case Severity::Error:
    return "error";
  }
  return "";
}

std::string shownPath(llvm::StringRef path) {
  llvm::SmallString<256> here;
  if (!llvm::sys::path::is_absolute(path) || llvm::sys::fs::current_path(here)) {
    return path.str();
  }
  llvm::SmallString<256> clean = path;
  llvm::sys::path::remove_dots(clean, /*remove_dot_dot=*/false);
  llvm::StringRef rest = clean;
  const bool below = rest.consume_front(here) && rest.consume_front("/") && !rest.empty();
  return below ? rest.str() : path.str();
}

void renderText(llvm::raw_ostream &out, const SourceManager &sources, const Diagnostic &diagnostic, bool colour) {
  Renderer(out, sources, colour).render(diagnostic);
}

void renderText(llvm::raw_ostream &out, const DiagnosticEngine &diags, bool colour) {
  bool isFirst = true;
  for (const Diagnostic &d : diags.all()) {
    out << (isFirst ? "" : "\n");
    renderText(out, diags.sources(), d, colour);
    isFirst = false;
  }
}

} // namespace shardc
