// Axes: ranks, meshes, views, axes and atoms (design: types, section 1).
//
// A world of N ranks is seen through several views (dense, expert, data loading), each an ordered list of named axes. An
// atom is a digit (size, stride) of the coarsest common refinement of all views; an axis is an ordered product of atoms;
// types live on atoms, so that reading a type in another view is only a change of vocabulary.
//
// Where two views cut a block of ranks at boundaries that do not divide one another, no common refinement exists. The
// block then has several variants, one list of atoms per way of cutting it, and a value uses the atoms of one variant.
// Every other atom is a block of its own with one variant.
#pragma once

#include "shardc/Support/Diagnostics.h"
#include <optional>

namespace shardc {

struct AxisSpec {
  std::string name;
  int64_t size = 1;
  std::optional<int64_t> stride; // row-major if absent
  SourceRange range;
};

struct ViewSpec {
  std::string name;           // "dense", "expert"
  std::vector<AxisSpec> axes; // outermost first
  SourceRange range;
};

// A name for a product of axes, outermost first: dp_cp = (dp, cp).
struct FlatSpec {
  std::string name;
  std::vector<std::string> axes;
  SourceRange range;
};

struct Atom {
  int64_t size = 1;   // never 1
  int64_t stride = 1; // rank = sum of coordinate * stride
  uint32_t block = 0; // atoms of one block with different variants are two ways of cutting the same ranks
  uint32_t variant = 0;
};

struct Axis {
  std::string name;
  int64_t size = 1;
  llvm::SmallVector<AtomId, 4> atoms; // outermost first; empty for size 1
  bool flattened = false;             // a name for a product of others
  bool stage = false;                 // `pp`: a function belongs to one stage, so its values have no type on it
  std::string view;                   // the first view that names it
};

class Axes {
public:
  // Checks that every view covers the world exactly once, that names agree and that sizes multiply out; emits a
  // diagnostic per fault and returns nothing if there was one.
  static std::optional<Axes> build(Located<int64_t> world, llvm::ArrayRef<ViewSpec> views, llvm::ArrayRef<FlatSpec> flats,
                                   DiagnosticEngine &diags);

  int64_t world() const { return worldSize; }
  llvm::ArrayRef<Atom> atoms() const { return atomList; }
  const Atom &atom(AtomId id) const { return atomList[id.index]; }
  llvm::ArrayRef<Axis> axes() const { return axisList; } // in order of the views, flattened ones last
  llvm::ArrayRef<ViewSpec> views() const { return viewList; }
  const Axis *find(llvm::StringRef name) const;
  std::vector<llvm::StringRef> axisNames() const;

  int64_t product(llvm::ArrayRef<AtomId> atoms) const;
  // The coordinate of a rank on an atom, and its row-major coordinate on several (outermost first).
  int64_t coordinate(int64_t rank, AtomId atom) const { return rank / atomList[atom.index].stride % atomList[atom.index].size; }
  int64_t coordinate(int64_t rank, llvm::ArrayRef<AtomId> atoms) const;

  // Groups are digits; only here do they become lists. One group per setting of the other ranks, in order of first rank;
  // ranks inside in row-major order of `atoms`.
  std::vector<std::vector<int64_t>> groups(llvm::ArrayRef<AtomId> atoms) const;

  // The same ranks in the other ways of cutting a block: the list whose atoms of `from`'s block are replaced by those of
  // `variant`, if the list holds the whole block contiguously and in rank order; otherwise nothing.
  std::optional<llvm::SmallVector<AtomId, 4>> recut(llvm::ArrayRef<AtomId> atoms, uint32_t block, uint32_t variant) const;
  // All atoms of one variant of a block, outermost first.
  llvm::ArrayRef<AtomId> blockAtoms(uint32_t block, uint32_t variant) const;
  uint32_t variantCount(uint32_t block) const;
  uint32_t blockCount() const { return static_cast<uint32_t>(blocks.size()); }
  bool isStage(AtomId atom) const; // an atom of the stage axis

  // Names that cover `atoms` in order: "dp,cp,tp". Prefers axes of `view` if given, then few names, then views in order;
  // a digit that no axis names alone is written "tp.0" (outermost digit of tp) and the like.
  std::string describe(llvm::ArrayRef<AtomId> atoms, llvm::StringRef view = {}) const;

  // What a name that `describe` writes stands for: an axis, or a digit of one ("tp.0").
  std::optional<llvm::SmallVector<AtomId, 4>> findAtoms(llvm::StringRef name) const;

private:
  struct Builder;
  std::string describeDigit(AtomId atom, llvm::ArrayRef<const ViewSpec *> views) const;

  int64_t worldSize = 1;
  std::vector<Atom> atomList;
  std::vector<Axis> axisList;
  std::vector<ViewSpec> viewList;
  std::vector<std::vector<std::vector<AtomId>>> blocks; // [block][variant] -> atoms, outermost first
};

} // namespace shardc
