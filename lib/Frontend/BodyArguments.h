// BodyArguments: what stands in a call besides its tensors, read as the operation's row says (`Takes`, options).
#pragma once

#include "Expr.h"
#include "shardc/Frontend/Body.h"

namespace shardc {

// Fills `attrs` from the arguments that are no tensors and from key=value. Every fault is reported; false if there was one.
bool readAttrs(const CallText &call, OpKind kind, llvm::ArrayRef<Piece> rest, llvm::ArrayRef<ArgumentText> options, ParseEnv &env,
               Attrs &attrs);

// "2 tensors and a change of layout": for `wrong-arguments`.
std::string takesText(OpKind kind);

} // namespace shardc
