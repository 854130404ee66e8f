// Kernels: what all of them share, and the look-up by name. See the header.
#include "Kernels.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/StringExtras.h"

namespace shardc {

const Kernel *findKernel(llvm::StringRef name) {
  for (llvm::ArrayRef<Kernel> table :
       {pointKernels(), contractKernels(), rowKernels(), viewKernels(), expertKernels(), attentionKernels()}) {
    for (const Kernel &k : table) {
      if (k.name == name) {
        return &k;
      }
    }
  }
  return nullptr;
}

std::optional<size_t> KernelCall::dimension(const Tensor &t, int64_t fallback) const {
  int64_t d = fallback;
  const std::optional<llvm::StringRef> text = option("dim");
  if (text && text->getAsInteger(10, d)) {
    // By name: the first that has it; the checker has seen that there is one only.
    const llvm::ArrayRef<Dim> dims = !inTypes.empty() && inTypes[0] ? llvm::ArrayRef<Dim>(inTypes[0]->dims) : llvm::ArrayRef<Dim>();
    for (d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
      Dim whole = dims[static_cast<size_t>(d)];
      llvm::for_each(whole.factors, [](Factor &f) { f.atoms.clear(); });
      if (print(whole, *module) == *text) {
        return static_cast<size_t>(d);
      }
    }
    return std::nullopt;
  }
  const auto n = static_cast<int64_t>(t.dims.size());
  d = d < 0 ? d + n : d;
  return d >= 0 && d < n ? std::optional<size_t>(static_cast<size_t>(d)) : std::nullopt;
}

std::optional<Shape> KernelCall::resultDims(size_t result) const {
  if (result >= outTypes.size() || !outTypes[result]) {
    return std::nullopt;
  }
  return localDims(*outTypes[result], rank, axes());
}

uint64_t kernelKey(const KernelCall &call) {
  uint64_t key = 0;
  for (char c : opInfo(call.op->kind).name) {
    key = keyedWord(key, static_cast<uint64_t>(c));
  }
  return key;
}

namespace {
// number, size, product, quotient, brackets: 1/(B*L). Anything else (a root) becomes a keyed constant of its text.
class ConstantReader {
public:
  ConstantReader(llvm::StringRef t, const Module &m) : text(t), module(m) {}
  std::optional<Element> read() {
    std::optional<Element> value = terms();
    return text.trim().empty() ? value : std::nullopt;
  }

private:
  std::optional<Element> terms() {
    std::optional<Element> value = atom();
    while (value) {
      text = text.ltrim();
      const bool divide = text.starts_with("/");
      if (!divide && !text.starts_with("*")) {
        return value;
      }
      text = text.drop_front();
      const std::optional<Element> next = atom();
      value = next ? std::optional(multiply(*value, divide ? inverse(*next) : *next)) : std::nullopt;
    }
    return value;
  }

  std::optional<Element> atom() {
    text = text.ltrim();
    if (text.consume_front("-")) {
      const std::optional<Element> value = atom();
      return value ? std::optional(negate(*value)) : std::nullopt;
    }
    if (text.consume_front("(")) {
      const std::optional<Element> value = terms();
      text = text.ltrim();
      return text.consume_front(")") ? value : std::nullopt;
    }
    const llvm::StringRef word = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    text = text.drop_front(word.size());
    return number(word);
  }

  std::optional<Element> number(llvm::StringRef word) const {
    const auto [whole, fraction] = word.split('.');
    uint64_t digits = 0;
    if (!word.empty() && !(whole + fraction).str().empty() && !llvm::StringRef((whole + fraction).str()).getAsInteger(10, digits)) {
      return multiply(reduce(digits), inverse(power(10, fraction.size())));
    }
    for (const auto &[name, extent] : module.sizes) {
      if (module.names.str(name) == word && extent > 0) {
        return fromInteger(extent);
      }
    }
    return std::nullopt;
  }

  llvm::StringRef text;
  const Module &module;
};
} // namespace

Element constantOf(const KernelCall &call, llvm::StringRef text) {
  if (const std::optional<Element> value = ConstantReader(text, *call.module).read()) {
    return *value;
  }
  uint64_t key = 0;
  for (char c : text) {
    key = keyedWord(key, static_cast<uint64_t>(c));
  }
  return keyed(key, 1);
}

std::vector<int64_t> wholePositions(const Type *type, size_t dim, int64_t local, int64_t rank, const Axes &axes) {
  std::vector<int64_t> out;
  if (type && dim < type->dims.size()) {
    int64_t extent = type->dims[dim].concat ? 0 : 1;
    for (const Factor &f : type->dims[dim].factors) {
      extent = type->dims[dim].concat ? extent + globalExtent(f) : extent * globalExtent(f);
    }
    if (std::optional<std::vector<int64_t>> part = dimPart(type->dims[dim], rank, axes, extent)) {
      out = std::move(*part);
    }
  }
  if (static_cast<int64_t>(out.size()) != local) {
    out.resize(static_cast<size_t>(local));
    std::iota(out.begin(), out.end(), 0);
  }
  return out;
}

std::vector<uint64_t> wholeIndices(const Tensor &t, const Type *type, int64_t rank, const Module &module) {
  std::vector<uint64_t> out(1, 0);
  for (size_t d = 0; d < t.dims.size(); ++d) {
    if (t.slots && d == 0) {
      out.clear();
      const std::vector<int64_t> experts = wholePositions(type, 0, t.extent(0), rank, module.axes);
      for (const SlotRow &r : *t.slots) {
        out.push_back(keyedWord(keyedWord(static_cast<uint64_t>(experts[static_cast<size_t>(r.expert)]), static_cast<uint64_t>(r.token)),
                                static_cast<uint64_t>(r.choice)));
      }
      d = 1;
      continue;
    }
    std::vector<uint64_t> next;
    const std::vector<int64_t> positions = wholePositions(type, d, t.extent(d), rank, module.axes);
    for (uint64_t major : out) {
      for (int64_t p : positions) {
        next.push_back(keyedWord(major, static_cast<uint64_t>(p)));
      }
    }
    out = std::move(next);
  }
  return out;
}

void accumulate(std::optional<Tensor> &sum, Tensor part) {
  if (!sum) {
    sum = std::move(part);
    return;
  }
  for (size_t i = 0; i < sum->data.size() && i < part.data.size(); ++i) {
    sum->data[i] = add(sum->data[i], part.data[i]);
  }
}

bool sameExtents(const Tensor &a, const Tensor &b) {
  bool same = a.dims.size() == b.dims.size() && static_cast<bool>(a.slots) == static_cast<bool>(b.slots) && a.data.size() == b.data.size();
  for (size_t d = 0; same && d < a.dims.size(); ++d) {
    same = a.extent(d) == b.extent(d);
  }
  return same && (!a.slots || *a.slots == *b.slots);
}

} // namespace shardc
