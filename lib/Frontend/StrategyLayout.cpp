// StrategyLayout: layouts that a strategy writes for parameters and inputs.
//
// A short form is a change without an arrow, read as what the value is: `S(0)@tp`, `Fm@tp; I@dp`, or `R`. A long form is a
// whole type without dtype; its dimensions must be those of the model, so that it also checks the reader's idea of them.
#include "StrategyLayout.h"

namespace shardc {
namespace {

class LayoutWriter {
public:
  LayoutWriter(Type &t, SourceRange r, llvm::StringRef w, ParseEnv &e) : type(t), range(r), what(w), env(e) {}

  bool longForm(llvm::StringRef text) {
    std::optional<Type> written = parseType(text, range, env);
    if (!written) {
      return false;
    }
    if (!sameDims(*written)) {
      env.diags.emit<Diag::LayoutMismatch>(range, text, what, print(type, env.module));
      return false;
    }
    type.dims = written->dims;
    type.states = written->states;
    return true;
  }

  bool part(const AxisChange &change) {
    if (change.from) {
      env.diags.emit<Diag::BadChange>(range, "a layout has no `->`");
      return false;
    }
    for (AtomId atom : change.atoms) {
      if (stateOf(type, atom) != State::R) {
        env.diags.emit<Diag::BadChange>(range, "an axis of it is given twice");
        return false;
      }
    }
    if (change.to.state != State::S) {
      for (AtomId atom : change.atoms) {
        setState(type, atom, change.to.state);
      }
      return true;
    }
    return change.to.dim.valid() ? named(change) : numbered(change);
  }

private:
  bool sameDims(const Type &other) const {
    auto same = [](const Dim &a, const Dim &b) {
      return a.concat == b.concat &&
             llvm::equal(a.factors, b.factors, [](const Factor &x, const Factor &y) { return x.name == y.name && x.extent == y.extent; });
    };
    return llvm::equal(type.dims, other.dims, same);
  }

  bool missing(llvm::StringRef dim) {
    env.diags.emit<Diag::LayoutMismatch>(range, dim, what, print(type, env.module));
    return false;
  }

  void give(llvm::MutableArrayRef<Factor> factors, const AxisChange &change) {
    giveAtoms(factors, change.atoms, env.module.axes);
    for (Factor &f : factors) {
      int64_t shards = env.module.axes.product(f.atoms);
      if (change.to.pad && shards > 1 && f.extent > 0 && f.extent % shards != 0) {
        f.padTo = (f.extent / shards + 1) * shards;
        f.pad = Pad::Zero;
      }
    }
  }

  // A factor, or a product of factors such as T.
  bool named(const AxisChange &change) {
    auto entry = env.sizes.find(change.to.dim);
    for (Dim &dim : type.dims) {
      for (Factor &f : dim.factors) {
        if (f.name == change.to.dim) {
          give(llvm::MutableArrayRef(f), change);
          return true;
        }
      }
      if (entry != env.sizes.end() && !entry->second.product.empty() &&
          llvm::equal(dim.factors, entry->second.product, [](const Factor &f, NameId name) { return f.name == name; })) {
        give(dim.factors, change);
        return true;
      }
    }
    return missing(env.module.names.str(change.to.dim));
  }

  bool numbered(const AxisChange &change) {
    int64_t rank = static_cast<int64_t>(type.dims.size());
    int64_t index = change.to.index < 0 ? change.to.index + rank : change.to.index;
    if (index < 0 || index >= rank) {
      return missing("S(" + std::to_string(change.to.index) + ")");
    }
    Dim &dim = type.dims[index];
    if (dim.concat) {
      env.diags.emit<Diag::BadChange>(range, "dimension " + std::to_string(index) + " of " + what.str() + " is " + print(dim, env.module) +
                                                 ", whose parts are sharded one by one; write the type in full");
      return false;
    }
    give(dim.factors, change);
    return true;
  }

  Type &type;
  SourceRange range;
  llvm::StringRef what;
  ParseEnv &env;
};

} // namespace

bool putLayout(Type &type, llvm::StringRef text, SourceRange range, llvm::StringRef what, ParseEnv &env) {
  LayoutWriter writer(type, range, what, env);
  if (text.trim() == "R") {
    return true;
  }
  if (text.ltrim().starts_with("[")) {
    return writer.longForm(text);
  }
  std::optional<Change> change = parseChange(text, range, env);
  return change && llvm::all_of(change->parts, [&](const AxisChange &part) { return writer.part(part); });
}

} // namespace shardc
