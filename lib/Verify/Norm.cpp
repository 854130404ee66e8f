// Norm: the clip norm is the root of the sum of squares of every distinct element of the reduced gradients, each once.
//
// An element is held by all ranks that agree on the atoms which shard its gradient, the framework's own sharding of gradients
// included; pipeline stages hold different parameters. So a family's squares are to be added over exactly those atoms, or over
// more where of the copies only one counts.
#include "shardc/Verify/Sync.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

llvm::SmallVector<AtomId, 8> distinctOver(const SyncRow &row, const Axes &axes) {
  llvm::SmallVector<AtomId, 8> atoms;
  for (size_t i = 0; i < axes.atoms().size(); ++i) {
    const AtomId a(i);
    const bool shards = row.synchronised && stateOf(*row.synchronised, a) == State::S;
    if (shards || llvm::is_contained(row.shardedOver, a) || (axes.isStage(a))) {
      atoms.push_back(a);
    }
  }
  return atoms;
}

namespace {

// Where a row and the norm use different ways of cutting a block, both are brought to whole blocks.
bool cutAlike(llvm::ArrayRef<AtomId> a, llvm::ArrayRef<AtomId> b, const Axes &axes) {
  return llvm::all_of(a, [&](AtomId x) {
    return llvm::all_of(b, [&](AtomId y) {
      const Atom &p = axes.atom(x), &q = axes.atom(y);
      return p.block != q.block || p.variant == q.variant;
    });
  });
}

// All atoms of a block, whichever way of cutting it they belong to, as those of the first way; nothing if it is not whole.
std::optional<llvm::SmallVector<AtomId, 8>> firstVariant(llvm::ArrayRef<AtomId> atoms, const Axes &axes) {
  llvm::SmallVector<AtomId, 8> out;
  for (AtomId a : atoms) {
    const Atom &atom = axes.atom(a);
    llvm::ArrayRef<AtomId> block = axes.blockAtoms(atom.block, atom.variant);
    if (atom.variant == 0) {
      out.push_back(a);
    } else if (llvm::all_of(block, [&](AtomId x) { return llvm::is_contained(atoms, x); })) {
      llvm::append_range(out, axes.blockAtoms(atom.block, 0));
    } else {
      return std::nullopt;
    }
  }
  llvm::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void checkRow(const Module &module, const SyncRow &row, const SyncFamily &family, DiagnosticEngine &diags) {
  const Axes &axes = module.axes;
  const SyncNorm &norm = *family.norm;
  llvm::SmallVector<AtomId, 8> distinct, over(norm.over.begin(), norm.over.end());
  for (AtomId a : distinctOver(row, axes)) {
    if (!llvm::is_contained(family.tiedOver, a)) { // stages that share it hold copies
      distinct.push_back(a);
    }
  }
  if (!cutAlike(distinct, over, axes)) {
    auto first = firstVariant(distinct, axes), second = firstVariant(over, axes);
    if (first && second) {
      distinct = std::move(*first);
      over = std::move(*second);
    }
  }
  llvm::SmallVector<AtomId, 8> left, twice;
  llvm::copy_if(distinct, std::back_inserter(left), [&](AtomId a) { return !llvm::is_contained(over, a); });
  llvm::copy_if(over, std::back_inserter(twice),
                [&](AtomId a) { return !llvm::is_contained(distinct, a) && !llvm::is_contained(norm.once, a); });
  const SourceRange place = norm.range.valid() ? norm.range : row.parameter;
  if (!left.empty()) {
    const std::string groups = over.empty() ? "no ranks" : "`" + axes.describe(over, module.view) + "`";
    diags.emit<Diag::NormLeavesOut>(place, row.parameters, groups, axes.describe(left, module.view))
        .help("add the squares of family `" + row.family + "` over `" + axes.describe(distinct, module.view) + "`");
  }
  if (!twice.empty()) {
    diags.emit<Diag::NormCountsTwice>(place, row.parameters, axes.describe(twice, module.view), axes.product(twice))
        .help("leave `" + axes.describe(twice, module.view) + "` out, or count only one of the copies (`once`)");
  }
}

} // namespace

void reportNorm(const TypedModule &typed, llvm::ArrayRef<SyncRow> rows, DiagnosticEngine &diags) {
  const Module &module = typed.module;
  std::vector<std::pair<uint32_t, llvm::SmallVector<AtomId, 8>>> told;
  for (const SyncRow &row : rows) {
    if (row.verdict != SyncVerdict::Right || !row.familyIndex) {
      continue; // its own finding comes first
    }
    const SyncFamily &family = module.sync->families[*row.familyIndex];
    std::pair<uint32_t, llvm::SmallVector<AtomId, 8>> kind(*row.familyIndex, distinctOver(row, module.axes));
    if (!family.norm || llvm::is_contained(told, kind)) {
      continue;
    }
    checkRow(module, row, family, diags);
    told.push_back(std::move(kind));
  }
}

} // namespace shardc
