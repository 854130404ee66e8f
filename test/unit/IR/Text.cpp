// Text: what is written means what is said, what is printed is read back, and what is wrong is pointed at.
#include "Catch.h"
#include "Worlds.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

TEST_CASE("a type has a dtype, dimensions and states") {
  Usual w;
  const auto t = w.type("f32[F@(dp,tp), D] P@cp");
  REQUIRE(t);
  Type expected;
  expected.dtype = DType::F32;
  expected.dims = {{{w.factor("F", 24, {"dp", "tp"})}, false}, {{w.factor("D", 16)}, false}};
  setState(expected, w.atoms({"cp"})[0], State::P);
  CHECK(*t == expected);
  // Without a dtype, spaces wherever they may be, R meaning nothing.
  expected.dtype = DType::BF16;
  CHECK(w.type("[F@(dp,tp), D] P@cp") == expected);
  CHECK(w.type("  [ F @ ( dp , tp ) ,D ]  P @ cp R@pp ") == expected);
  CHECK(w.type("[F@(dp,tp), D] P(sum)@cp") == expected);
  CHECK(w.diags.all().empty());
}

TEST_CASE("a scalar has no dimensions, an integer no gradient") {
  Usual w;
  CHECK(w.type("f32[]")->dims.empty());
  CHECK(w.type("f32[]")->grad);
  CHECK_FALSE(w.type("i64[D]")->grad);
  CHECK_FALSE(w.type("f32[D] detached")->grad);
  CHECK(w.type("[2]")->dims[0].factors[0].extent == 2);
  CHECK(w.type("[D@one]") == w.type("[D]"));
}

TEST_CASE("each state is read") {
  Usual w;
  const AtomId tp = w.atoms({"tp"})[0];
  const std::pair<const char *, State> states[] = {{"P", State::P},         {"P(avg)", State::PAvg}, {"P(max)", State::PMax},
                                                   {"P(min)", State::PMin}, {"I", State::I},         {"V", State::V},
                                                   {"R", State::R}};
  for (const auto &[text, state] : states) {
    const auto t = w.type("[D] " + std::string(text) + "@tp");
    REQUIRE(t);
    CHECK(stateOf(*t, tp) == state);
  }
}

TEST_CASE("a product gives its axes to its factors, major first") {
  Usual w;
  const Dim expected{{w.factor("b", 4, {"dp"}), w.factor("l", 32, {"cp", "tp"})}, false};
  CHECK(w.dim("T@(dp,cp,tp)") == expected);
  CHECK(w.dim("(b@dp l@(cp,tp))") == expected);
  CHECK(w.dim("(T@(dp,cp,tp))") == expected);
  // b has four elements: tp fits beside half of dp, a fourth axis does not.
  CHECK(w.dim("T@(dp_replicate,tp,cp)") == Dim{{w.factor("b", 4, {"dp_replicate", "tp"}), w.factor("l", 32, {"cp"})}, false});
  CHECK(w.dim("T") == Dim{{w.factor("b", 4), w.factor("l", 32)}, false});
  // Once an axis has gone to l, no later one goes to b.
  World three(mesh(12, {view("dense", {{"a", 3}, {"c", 4}})}));
  three.size("b", 4);
  three.size("l", 9);
  three.product("T", {"b", "l"});
  CHECK(three.dim("T@(a,c)") == Dim{{three.factor("b", 4), three.factor("l", 9, {"a", "c"})}, false});
}

TEST_CASE("numbers, products and parts are dimensions") {
  Usual w;
  Factor two;
  two.extent = 2;
  CHECK(w.dim("(2 F@tp)") == Dim{{two, w.factor("F", 24, {"tp"})}, false});
  CHECK(w.dim("(F@tp + D@cp + E)") == Dim{{w.factor("F", 24, {"tp"}), w.factor("D", 16, {"cp"}), w.factor("E", 8)}, true});
  // Each part is sharded by itself, and all may be on the same axis.
  CHECK(w.dim("(F@tp + D@tp)") == Dim{{w.factor("F", 24, {"tp"}), w.factor("D", 16, {"tp"})}, true});
  CHECK(w.dim("(E T@dp)") == Dim{{w.factor("E", 8), w.factor("b", 4, {"dp"}), w.factor("l", 32)}, false});
  CHECK(w.dim("b.D")->factors[0].extent == 64);
}

TEST_CASE("extents, pads, splits and orders are read") {
  Usual w;
  Factor f = w.factor("F", 24, {"tp"});
  f.padTo = 32;
  f.pad = Pad::Zero;
  CHECK(w.dim("F@tp pad 32")->factors[0] == f);
  f.pad = Pad::Unknown;
  CHECK(w.dim("F@tp pad 32?")->factors[0] == f);
  f = w.factor("F", 24, {"dp", "tp"});
  f.split = Split::Flat;
  CHECK(w.dim("F@(dp,tp)!flat")->factors[0] == f);
  f.split = Split::Balanced;
  CHECK(w.dim("F@(dp,tp)!balanced")->factors[0] == f);
  f = w.factor("l", 32);
  f.permuted = true;
  CHECK(w.dim("l'")->factors[0] == f);
  f = w.factor("M", Ragged);
  CHECK(w.dim("M~")->factors[0] == f);
  f.divisor = 8;
  CHECK(w.dim("M~%8")->factors[0] == f);
  CHECK(w.dim("M=12")->factors[0] == w.factor("M", 12));
  f = w.factor("N", Symbolic);
  f.divisor = 8;
  CHECK(w.dim("N")->factors[0] == f);
}

TEST_CASE("slots remember their origin") {
  Usual w;
  const auto origin = [&](const std::string &text) {
    const auto d = w.dim(text);
    REQUIRE(d);
    REQUIRE(d->factors[0].origin.valid());
    CHECK(d->factors[0].extent == Ragged);
    return w.module.types.origin(d->factors[0].origin);
  };
  const Dim tokens{{w.factor("b", 4, {"dp"}), w.factor("l", 32, {"tp"})}, false};
  CHECK(origin("c@(dp,tp):T") == Origin{0, tokens, false});
  CHECK(origin("c@dp:T@(dp,tp)") == Origin{0, tokens, false});
  CHECK(origin("c:T@(dp,tp)#3") == Origin{3, tokens, false});
  CHECK(origin("c@tp:slice T@(dp,tp)") == Origin{0, tokens, true});
  CHECK(origin("c@tp:T@()").tokens == *w.dim("T"));
  CHECK(w.dim("c@(dp,tp):T")->factors[0].origin == w.dim("c@(dp,tp):T@(dp,tp)")->factors[0].origin);
  CHECK(w.dim("c@(dp,tp):T")->factors[0].origin != w.dim("c@(dp,tp):T#1")->factors[0].origin);
}

TEST_CASE("types print as people write them") {
  Usual w;
  for (const char *text : {"bf16[T@(dp,cp,tp), D]",
                           "bf16[T@(dp,cp), D] P@tp",
                           "f32[D] I@tp",
                           "f32[D] P(avg)@dp",
                           "f32[]",
                           "i64[T@dp]",
                           "bf16[(2 F@tp), D]",
                           "bf16[(F@tp + D@tp + E@tp)]",
                           "bf16[E@efsdp.1, F]",
                           "bf16[(F@tp D@cp)]",
                           "bf16[c@(dp,tp):T, D]",
                           "bf16[E@tp, c@dp_replicate:T@(dp,tp), D]",
                           "bf16[F@tp pad 32]",
                           "bf16[F@tp pad 32?]",
                           "bf16[M~%8]",
                           "bf16[N%8]",
                           "bf16[l']",
                           "bf16[T'@(dp,cp)]",
                           "bf16[F@(dp,tp)!flat]",
                           "f32[D] detached",
                           "f32[D] P@(dp,cp) I@tp",
                           "f32[D] P(max)@tp",
                           "f32[D] V@cp",
                           "bf16[F@dp_shard, D]",
                           "bf16[b.D]",
                           "bf16[F=12]"}) {
    const auto t = w.type(text);
    REQUIRE(t);
    // Half of dp has a name of its own in another view.
    CHECK(print(*t, w.module) == (llvm::StringRef(text).contains("efsdp.1") ? "bf16[E@dp_shard, F]" : text));
  }
  // The vocabulary comes first, even where another view has one name for two.
  CHECK(print(*w.type("[E@ep, F]"), w.module) == "bf16[E@(cp,tp), F]");
  CHECK(print(*w.type("[E@ep, F]"), w.module, "sparse") == "bf16[E@ep, F]");
  CHECK(print(*w.type("[(b@dp l@(cp,tp))]"), w.module) == "bf16[T@(dp,cp,tp)]");
  // The axes would not fall to the factors like this.
  CHECK(print(*w.type("[(b l@dp)]"), w.module) == "bf16[(b l@dp)]");
  CHECK(print(*w.type("[F@dp]"), w.module, "storage") == "bf16[F@(dp_replicate,dp_shard)]");
  CHECK(print(*w.type("[F@(cp,tp)]"), w.module, "sparse") == "bf16[F@ep]");
  CHECK(w.diags.all().empty());
}

TEST_CASE("changes print as people write them") {
  Usual w;
  Change c;
  Endpoint partial{State::P, {}, 0, {}, false};
  Endpoint rows{State::S, w.module.names.intern("T"), 0, {}, false};
  c.parts.push_back({w.atoms({"tp"}), partial, rows});
  CHECK(print(c, w.module) == "P@tp -> T@tp");
  Endpoint last{State::S, {}, -1, {}, false};
  c.parts.push_back({w.atoms({"dp", "cp"}), std::nullopt, last});
  CHECK(print(c, w.module) == "P@tp -> T@tp; S(-1)@(dp,cp)");
  Endpoint slots{State::S, w.module.names.intern("c"), 0, w.module.names.intern("T"), false};
  CHECK(print(Change{{{w.atoms({"tp"}), std::nullopt, slots}}, "", {}, {}}, w.module) == "c@tp:T");
  rows.pad = true;
  CHECK(print(Change{{{w.atoms({"tp"}), std::nullopt, rows}}, "", {}, {}}, w.module) == "T@tp pad");
}

// -- Round trip ---------------------------------------------------------------------------------------------------------

namespace {

// A small generator of its own, so that every run makes the same types.
struct Random {
  uint64_t state = 1;
  uint64_t below(uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
  }
};

struct Generator {
  World &w;
  Random random;
  llvm::SmallVector<AtomId, 16> free;

  // Some of the atoms that are left, in any order.
  llvm::SmallVector<AtomId, 4> take(uint64_t most) {
    llvm::SmallVector<AtomId, 4> taken;
    for (uint64_t n = random.below(most + 1); n > 0 && !free.empty(); --n) {
      auto *it = free.begin() + static_cast<ptrdiff_t>(random.below(free.size()));
      taken.push_back(*it);
      free.erase(it);
    }
    return taken;
  }

  Factor base() {
    const std::pair<const char *, int64_t> declared[] = {{"b", 4}, {"l", 32}, {"D", 16}, {"F", 24}, {"E", 8}};
    Factor f;
    switch (random.below(8)) {
    case 0:
      f.extent = static_cast<int64_t>(random.below(9));
      return f;
    case 1:
      f = w.factor("M", Ragged);
      f.divisor = 1 + static_cast<int64_t>(random.below(3));
      return f;
    case 2:
      f = w.factor("N", Symbolic);
      f.divisor = 8;
      return f;
    case 3:
      return w.factor("F", 7); // another extent than the declared one
    default:
      const auto &[name, extent] = declared[random.below(5)];
      f = w.factor(name, extent);
      f.permuted = random.below(6) == 0;
      return f;
    }
  }

  Factor factor() {
    Factor f = base();
    f.atoms = take(2);
    f.split = static_cast<Split>(random.below(6) < 4 ? 0 : random.below(3));
    if (f.extent > 0 && random.below(5) == 0) {
      f.padTo = f.extent + static_cast<int64_t>(random.below(9));
      f.pad = random.below(2) ? Pad::Zero : Pad::Unknown;
    }
    if (f.name.valid() && f.extent != Symbolic && random.below(6) == 0) {
      f.origin = origin(f);
    }
    return f;
  }

  OriginId origin(const Factor &slots) {
    Origin o;
    o.site = static_cast<uint32_t>(random.below(3));
    o.fromSlice = random.below(2) != 0;
    if (!o.fromSlice || random.below(2)) {
      o.tokens.factors = {w.factor("b", 4), w.factor("l", 32)};
      // Its own axes: those of the slots, or others.
      llvm::SmallVector<AtomId, 4> atoms = slots.atoms;
      if (random.below(2)) {
        atoms = w.atoms({"dp", "tp"});
        atoms.resize(random.below(atoms.size() + 1));
      }
      giveAtoms(o.tokens.factors, atoms, w.module.axes);
    }
    return w.module.types.internOrigin(o);
  }

  Dim dim() {
    Dim d;
    if (random.below(4) == 0) { // T, or what looks like it
      d.factors = {w.factor("b", 4), w.factor("l", 32)};
      d.factors[1].permuted = random.below(4) == 0;
      if (random.below(3) == 0) {
        d.factors[random.below(2)].atoms = take(3);
      } else {
        giveAtoms(d.factors, take(4), w.module.axes);
      }
      return d;
    }
    for (uint64_t n = 1 + random.below(3) * random.below(2); n > 0; --n) {
      d.factors.push_back(factor());
    }
    d.concat = d.factors.size() > 1 && random.below(3) == 0;
    if (d.concat && random.below(2)) { // each part on the same axes
      for (Factor &f : d.factors) {
        f.atoms = d.factors.front().atoms;
      }
    }
    return d;
  }

  Type type() {
    const Axes &axes = w.module.axes;
    free.clear();
    for (uint32_t block = 0; block < axes.blockCount(); ++block) {
      const auto variant = static_cast<uint32_t>(random.below(axes.variantCount(block)));
      llvm::append_range(free, axes.blockAtoms(block, variant));
    }
    Type t;
    t.dtype = static_cast<DType>(random.below(12));
    t.grad = isFloat(t.dtype) && random.below(4) != 0;
    for (uint64_t n = random.below(4); n > 0; --n) {
      t.dims.push_back(dim());
    }
    for (AtomId atom : take(4)) {
      setState(t, atom, static_cast<State>(random.below(7)));
    }
    return t;
  }
};

} // namespace

TEST_CASE("what is printed is read back as the same type, in every vocabulary") {
  Usual plain;
  World cut(mesh(12, {view("dense", {{"dp", 6}, {"tp", 2}}), view("storage", {{"dp_replicate", 2}, {"dp_shard", 3}, {"tp", 2}}),
                      view("sparse", {{"dp_replicate", 2}, {"edp", 2}, {"ep", 3}})}));
  cut.declareSizes();
  for (World *w : {static_cast<World *>(&plain), &cut}) {
    Generator generate{*w, {}, {}};
    for (int i = 0; i < 5000; ++i) {
      const Type t = generate.type();
      for (const char *vocabulary : {"dense", "sparse", "storage"}) {
        const std::string text = print(t, w->module, vocabulary);
        const auto again = w->type(text);
        if (again != t) {
          FAIL(text << " / " << (again ? print(*again, w->module) : w->diags.all().back().message));
        }
      }
    }
    CHECK(w->diags.all().empty());
  }
}
