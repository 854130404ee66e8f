// Changes: the table of Changes.def as data.
//
// Nothing is decided here; the rows say what each change costs and what its gradient is.
#include "shardc/IR/Changes.h"
#include "llvm/ADT/STLExtras.h"

namespace shardc {

namespace {

// Names as the rows write them.
constexpr auto R = State::R, I = State::I, V = State::V, P = State::P, PAvg = State::PAvg, PMax = State::PMax, PMin = State::PMin,
               S = State::S;
constexpr std::nullopt_t NoState = std::nullopt;

constexpr std::optional<std::pair<State, State>> gradientOf(State from, State to) { return std::pair(from, to); }
constexpr std::optional<std::pair<State, State>> gradientOf(std::nullopt_t, std::nullopt_t) { return std::nullopt; }

// Rows are computed in 128 bits, in which no product of two sizes overflows; what does not fit then is as large as can be.
using Wide = __int128;
constexpr int64_t narrow(Wide x) { return x > INT64_MAX ? INT64_MAX : static_cast<int64_t>(x); }

constexpr ChangeRow Rows[] = {
#define CHANGE(From, To, Prim, GradFrom, GradTo, OverN, Steps, Bytes)                                                                      \
  {From, To, Primitive::Prim, gradientOf(GradFrom, GradTo), OverN, [](int64_t ranks, int64_t localBytes) -> Cost {                         \
     [[maybe_unused]] const Wide n = ranks, L = localBytes;                                                                                \
     return {narrow(Steps), narrow(Bytes)};                                                                                                \
   }},
#include "shardc/IR/Changes.def"
};

} // namespace

llvm::ArrayRef<ChangeRow> changeRows() { return Rows; }

const ChangeRow *findChange(State from, State to) {
  const ChangeRow *it = llvm::find_if(Rows, [&](const ChangeRow &row) { return row.from == from && row.to == to; });
  return it == std::end(Rows) ? nullptr : it;
}

llvm::StringRef primitiveName(Primitive p) {
  switch (p) {
  case Primitive::None:
    return "";
  case Primitive::AllReduce:
    return "all-reduce";
  case Primitive::AllReduceMax:
    return "all-reduce max";
  case Primitive::AllReduceMin:
    return "all-reduce min";
  case Primitive::AllReduceMean:
    return "all-reduce mean";
  case Primitive::ReduceScatter:
    return "reduce-scatter";
  case Primitive::AllGather:
    return "all-gather";
  case Primitive::AllToAll:
    return "all-to-all";
  case Primitive::Slice:
    return "slice";
  case Primitive::ZeroFill:
    return "fill with zeros";
  case Primitive::KeepFirst:
    return "keep on one rank";
  }
  return "";
}

bool communicates(Primitive p) {
  switch (p) {
  case Primitive::None:
  case Primitive::Slice:
  case Primitive::ZeroFill:
  case Primitive::KeepFirst:
    return false;
  case Primitive::AllReduce:
  case Primitive::AllReduceMax:
  case Primitive::AllReduceMin:
  case Primitive::AllReduceMean:
  case Primitive::ReduceScatter:
  case Primitive::AllGather:
  case Primitive::AllToAll:
    return true;
  }
  return false;
}

} // namespace shardc
