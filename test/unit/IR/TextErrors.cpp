// TextErrors: what is wrong with a text is said, and where.
#include "Catch.h"
#include "Worlds.h"

using namespace shardc;

namespace {

// Message, name and the text that it points at; several are separated by a line break.
std::string mistakes(World &w, const std::string &text) {
  const size_t before = w.diags.all().size();
  CHECK_FALSE(w.type(text));
  std::string found;
  for (const Diagnostic &d : w.diags.all().drop_front(before)) {
    found += (found.empty() ? "" : "\n") + d.message + " [" + diagName(d.id) + "] at `" + w.sources.text(d.range).str() + "`";
    for (const std::string &help : d.helps) {
      found += "; " + help;
    }
  }
  return found;
}

} // namespace

TEST_CASE("unknown names are reported with the nearest known one, all of them") {
  Usual w;
  CHECK(mistakes(w, "bf61[D]") == "`bf61` is not a dtype [unknown-name] at `bf61`");
  CHECK(mistakes(w, "f23[D]").find("`f23` is not a dtype [unknown-name] at `f23`") == 0);
  CHECK(mistakes(w, "[D@dp_shrad]") == "`dp_shrad` is not an axis [unknown-name] at `dp_shrad`; did you mean `dp_shard`?");
  w.size("hidden", 8);
  CHECK(mistakes(w, "[hiden] P@xyzzy") == "`hiden` is not a size [unknown-name] at `hiden`; did you mean `hidden`?\n"
                                          "`xyzzy` is not an axis [unknown-name] at `xyzzy`");
  CHECK(mistakes(w, "[tokens@dp, 1.5]") == "`tokens` is not a size [unknown-name] at `tokens`\n"
                                           "`1.5` is not a size [unknown-name] at `1.5`");
}

TEST_CASE("axes that do not fit together are reported") {
  Usual w;
  CHECK(mistakes(w, "[D@tp, F@tp]") == "cannot read this as a type: axis `tp` stands in it twice [bad-type] at `tp`");
  CHECK(mistakes(w, "[D@tp] P@tp") == "cannot read this as a type: axis `tp` stands in it twice [bad-type] at `tp`");
  CHECK(mistakes(w, "[(D@tp F@tp)]") == "cannot read this as a type: axis `tp` stands in it twice [bad-type] at `tp`");
  CHECK(mistakes(w, "[(D@tp + F@tp)] P@tp") == "cannot read this as a type: axis `tp` stands in it twice [bad-type] at `tp`");
  CHECK(mistakes(w, "[(D@tp + F@tp), E@tp]") == "cannot read this as a type: axis `tp` stands in it twice [bad-type] at `tp`");
  CHECK(mistakes(w, "[D@one] P@one") == "cannot read this as a type: axis `one` stands in it twice [bad-type] at `one`");
  CHECK(mistakes(w, "[D@loss, F@dp_shard]") ==
        "cannot read this as a type: the axes `loss` and `dp_shard` share ranks [bad-type] at `dp_shard`");
  World cut(mesh(6, {view("dense", {{"dp", 3}, {"tp", 2}}), view("expert", {{"edp", 2}, {"ep", 3}})}));
  CHECK(mistakes(cut, "[8@tp, 9@ep]") ==
        "cannot read this as a type: the axes `tp` and `ep` cut the same ranks differently [bad-type] at `ep`");
}

TEST_CASE("a wrong form is reported where it goes wrong") {
  Usual w;
  const auto bad = [&](const char *text) {
    const std::string found = mistakes(w, text);
    const llvm::StringRef prefix = "cannot read this as a type: ";
    CHECK(llvm::StringRef(found).starts_with(prefix));
    CHECK(llvm::StringRef(found).contains("[bad-type]"));
    return found.substr(std::min(found.size(), prefix.size()));
  };
  CHECK(bad("") == "it needs dimensions in `[` and `]` at its end [bad-type] at ``");
  CHECK(bad("bf16") == "it needs dimensions in `[` and `]` at its end [bad-type] at ``");
  CHECK(bad("[D") == "it needs `,` or `]` after a dimension at its end [bad-type] at ``");
  CHECK(bad("[D,]") == "a dimension is missing [bad-type] at `]`");
  CHECK(bad("[,D]") == "a dimension is missing [bad-type] at `,`");
  CHECK(bad("[D F]") == "it needs `,` or `]` after a dimension here [bad-type] at `F`");
  CHECK(bad("[-3]") == "a dimension is missing [bad-type] at `-`");
  CHECK(bad("[D]]") == "`]` follows the dimensions where a state such as `P@tp` may stand [bad-type] at `]`");
  CHECK(bad("[D] Q@tp") == "`Q` is none of the states R, I, V, P, P(avg), P(max), P(min) [bad-type] at `Q`");
  CHECK(bad("[D] P(mean)@tp") == "`P(mean)` is none of the states R, I, V, P, P(avg), P(max), P(min) [bad-type] at `P`");
  CHECK(bad("[D] P") == "it needs `@` and the axes of `P` at its end [bad-type] at ``");
  CHECK(bad("[D] P@") == "an axis is missing [bad-type] at ``");
  CHECK(bad("[D@()]") == "an axis is missing [bad-type] at `)`");
  CHECK(bad("[D@(tp]") == "it needs `,` or `)` after an axis here [bad-type] at `]`");
  CHECK(bad("[D@tp@cp]") == "a factor has one list of axes: `@(dp,tp)` [bad-type] at `cp`");
  CHECK(bad("[()]") == "a dimension needs a factor [bad-type] at `)`");
  CHECK(bad("[(D") == "`)` is missing [bad-type] at ``");
  CHECK(bad("[((D F) E)]") == "a factor is missing [bad-type] at `(`");
  CHECK(bad("[(+ D)]") == "a factor is missing [bad-type] at `+`");
  CHECK(bad("[(D + F E)]").find("a dimension is either a product `(a b)` or parts that follow one another `(a + b)`") == 0);
  CHECK(bad("[(T + D)]").find("the parts of `(a + b)` cannot be products") == 0);
  CHECK(bad("[99999999999999999999]") == "`99999999999999999999` is too large [bad-type] at `99999999999999999999`");
  CHECK(bad("[(9000000000000000000 D)]").find("the extent of the dimension is too large to count") == 0);
  CHECK(bad("[D pad 8]") == "`D` has 16 elements and cannot be padded to 8 [bad-type] at `D`");
  CHECK(bad("[D=]") == "an extent must be a number of at least 0 [bad-type] at `]`");
  CHECK(bad("[D!odd]") == "after `!` stands `flat` or `balanced` [bad-type] at `odd`");
  CHECK(bad("[D%4]") == "`%` belongs to an extent that is not known, but `D` is 16 [bad-type] at `D`");
  CHECK(bad("[M~%0]") == "a divisor must be a number of at least 1 [bad-type] at `0`");
  CHECK(bad("[T!flat]") == "`T` is a product; write its factors in brackets to say this of one of them [bad-type] at `T`");
  CHECK(bad("[8~]") == "`8` is a number; only a name can be permuted, ragged or have another extent [bad-type] at `8`");
  CHECK(bad("[c:]") == "the dimension that filled the slots is missing after `:` [bad-type] at `]`");
  CHECK(bad("[c:T:T]") == "it needs `,` or `]` after a dimension here [bad-type] at `:`");
}

TEST_CASE("a size that contains itself is reported") {
  Usual w;
  w.product("X", {"X", "b"});
  CHECK(mistakes(w, "[X]") == "cannot read this as a type: the product `X` contains itself or is too large [bad-type] at `X`");
  w.product("Y", {"b", "nothing"});
  CHECK(mistakes(w, "[Y]") == "cannot read this as a type: `nothing`, a factor of `Y`, is not a size [bad-type] at `Y`");
}

// Every cut and every single change of a character of good texts ends, and says something if nothing is read.
TEST_CASE("no text is refused in silence") {
  Usual w;
  for (const std::string text : {"bf16[T@(dp,cp,tp), (2 F@tp pad 32?)] P(avg)@pp", "[E@ep, c@dp_replicate:slice T@()#2, M~%8]",
                                 "f32[(F@tp + D@cp), l'!flat, F=3] detached"}) {
    for (size_t i = 0; i <= text.size(); ++i) {
      for (char c : std::string("[](),@:+'~%=!?# aT0.\x01\xff\0", 24)) {
        std::string changed = text;
        changed.insert(i, 1, c);
        for (const std::string &candidate : {text.substr(0, i), text.substr(i), changed}) {
          const size_t before = w.diags.errorCount();
          const auto t = w.type(candidate);
          if (t.has_value() == (w.diags.errorCount() > before)) {
            // An equal finding at an equal place is counted rather than repeated, but each text is a file of its own.
            INFO(candidate);
            CHECK(t.has_value() != (w.diags.errorCount() > before));
          }
        }
      }
    }
  }
}
