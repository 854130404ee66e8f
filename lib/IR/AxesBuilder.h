// AxesBuilder: the state of `Axes::build`, shared by the two files that implement it: AxesBuilder.cpp checks what was
// written and gives names, Axes.cpp refines. Not an interface: nothing else includes it.
#pragma once

#include "shardc/IR/Axes.h"

namespace shardc {

struct Axes::Builder {
  struct Digit {
    int64_t size = 1;
    int64_t stride = 1;
  };

  explicit Builder(DiagnosticEngine &engine) : diags(engine) {}

  // Checks every view by itself and against the others; fills `digits` and `axes.viewList`.
  bool readViews(Located<int64_t> world, llvm::ArrayRef<ViewSpec> views);
  // Blocks, variants and atoms from the views' digits.
  void refine();
  // Axes of the views, then flattened ones.
  void nameAxes();
  bool nameFlats(llvm::ArrayRef<FlatSpec> flats);

  DiagnosticEngine &diags;
  Axes axes;
  std::vector<std::vector<Digit>> digits;       // [view][axis]
  std::vector<std::vector<uint32_t>> variantOf; // [view][block]

private:
  bool readSizes(const ViewSpec &view, std::vector<Digit> &out);
  bool covers(const ViewSpec &view, llvm::ArrayRef<Digit> digits);
  bool agree();
  void addBlock(int64_t low, int64_t high);
  llvm::SmallVector<AtomId, 4> atomsOf(size_t view, const Digit &digit) const;
  bool nameFlat(const FlatSpec &flat);
  bool appendMember(const FlatSpec &flat, const Axis &member, Axis &axis);
};

} // namespace shardc
