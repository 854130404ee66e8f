// StrategyLayout: putting a written layout such as `S(0)@tp`, `E@ep` or `[F@tp, D]` onto a type that is replicated so far.
#pragma once

#include "shardc/Frontend/Body.h"

namespace shardc {

// False (and a message inside `range`) if the text is no layout or the type has not what it names. `what` names the value.
bool putLayout(Type &type, llvm::StringRef text, SourceRange range, llvm::StringRef what, ParseEnv &env);

} // namespace shardc
