// DeepSpeedTensor: how AutoTP cuts each linear layer.
//
// A table of specs decides: the one written in `partition_config`, a preset, or the model's own plan. A pattern is matched at the
// start of the whole name of a parameter, which ends in `.weight`; the first spec that matches wins, and what none matches stays
// whole, in silence. The outcome is a switch per layer (column, gathered, row, whole, absent) that the strategy file reads.

#include "DeepSpeed.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

namespace shardc::deepspeed {
namespace {

constexpr llvm::StringLiteral Section = "tensor_parallel.partition_config";
// No linear layers: nothing cuts them, but specs may name them.
constexpr llvm::StringLiteral Norms[] = {"model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight",
                                         "model.layers.0.self_attn.q_a_layernorm.weight", "model.layers.0.self_attn.kv_a_layernorm.weight",
                                         "model.norm.weight"};

int64_t sizeOf(const Job &job, llvm::StringRef name) {
  auto it = job.sizes.find(name.str());
  return it == job.sizes.end() ? 0 : it->second.value;
}

// Python's classes of characters in POSIX's words.
std::string posix(llvm::StringRef pattern) {
  std::string out = "^(";
  for (size_t i = 0; i < pattern.size(); ++i) {
    const llvm::StringRef two = pattern.substr(i, 2), three = pattern.substr(i, 3);
    if (three == "(?:") {
      out += "(";
      i += 2;
    } else if (two == "\\d" || two == "\\w" || two == "\\s") {
      out += two == "\\d" ? "[0-9]" : two == "\\w" ? "[A-Za-z0-9_]" : "[ \t]";
      ++i;
    } else if (two.size() == 2 && two[0] == '\\') {
      out += two.str();
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out + ")";
}

struct CompiledSpec {
  const LayerSpec *spec;
  std::vector<llvm::Regex> patterns;

  bool matches(llvm::StringRef name) const {
    return llvm::any_of(patterns, [&](const llvm::Regex &r) { return r.match(name); });
  }
};

class SpecReader {
public:
  SpecReader(const ConfigNode &node, DiagnosticEngine &d) : reader(node, ("`" + Section + "`").str(), d), diags(d) {}

  std::vector<LayerSpec> read() {
    defaults = boolean(reader, "use_default_specs", true);
    if (std::optional<Located<bool>> value = reader.boolean("strict_mode"); value && value->value) {
      strict = value->range;
    }
    reader.integer("embedding_partition_dim", 0, 1);
    reader.strings("lm_head_patterns");
    std::vector<LayerSpec> specs;
    if (const ConfigNode *list = reader.sequence("layer_specs")) {
      for (const ConfigNode &node : list->items) {
        specs.push_back(spec(node));
      }
    }
    reader.finish();
    return specs;
  }

  bool defaults = true;
  SourceRange strict; // where it is switched on

private:
  static bool boolean(DictReader &from, llvm::StringRef key, bool fallback) {
    std::optional<Located<bool>> value = from.boolean(key);
    return value ? value->value : fallback;
  }

  LayerSpec spec(const ConfigNode &node) {
    LayerSpec s;
    s.range = node.range;
    DictReader fields(node, "a layer spec", diags);
    fields.require("patterns");
    s.patterns = fields.strings("patterns");
    if (std::optional<Located<std::string>> type = fields.string("partition_type")) {
      s.type = type->value;
      if (s.type != "column" && s.type != "row" && s.type != "skip") {
        diags.emit<Diag::OutOfRange>(type->range, "partition_type", "one of `column`, `row`, `skip`", "`" + s.type + "`");
        s.type = "skip";
      }
    }
    const std::optional<Located<int64_t>> dim = fields.integer("partition_dim", 0, 1);
    s.gather = boolean(fields, "gather_output", false);
    s.allreduce = boolean(fields, "grad_allreduce", false);
    if (const ConfigNode *shape = fields.any("shape"); shape && shape->kind != ConfigNode::Kind::Null) {
      s.shaped = true;
      checkShape(*shape, dim ? dim->value : s.type == "row" ? 1 : 0);
    }
    fields.strings("model_types");
    fields.finish();
    checkSwitches(node, s);
    return s;
  }

  void checkSwitches(const ConfigNode &node, const LayerSpec &s) {
    auto at = [&](llvm::StringRef key) { return node.find(key) ? node.find(key)->range : node.range; };
    if (s.gather && s.shaped) {
      diags.emit<Diag::KeysConflict>(at("gather_output"), "`gather_output`", "`shape`").label(at("shape"), "given here");
    }
    if (s.gather && s.type != "column") {
      diags.emit<Diag::KeyWithoutEffect>(at("gather_output"), "gather_output", "only `column` has an output to gather");
    }
    if (s.allreduce && s.type != "skip") {
      diags.emit<Diag::KeyWithoutEffect>(at("grad_allreduce"), "grad_allreduce", "only `skip` sums the gradient of a whole weight");
    }
  }

  static bool isExtent(const ConfigNode &node, bool open) {
    const std::optional<int64_t> n = node.kind == ConfigNode::Kind::Scalar ? parseInteger(node.scalar) : std::nullopt;
    return n && (*n > 0 || (open && *n == -1));
  }

  // [3, -1] or [[q, kv, kv], -1]: numbers, and at most one list of numbers, where the weight is cut.
  void checkShape(const ConfigNode &shape, int64_t dim) {
    bool good = shape.kind == ConfigNode::Kind::Sequence && !shape.items.empty();
    size_t nested = 0;
    for (size_t i = 0; i < shape.items.size(); ++i) {
      const ConfigNode &item = shape.items[i];
      if (item.kind != ConfigNode::Kind::Sequence) {
        good &= isExtent(item, true);
        continue;
      }
      good &= ++nested == 1 && static_cast<int64_t>(i) == dim && !item.items.empty() &&
              llvm::all_of(item.items, [](const ConfigNode &part) { return isExtent(part, false); });
    }
    if (!good) {
      diags.emit<Diag::OutOfRange>(
          shape.range, "shape",
          llvm::formatv("positive numbers or -1, with at most one list of positive numbers, at dimension {0}", dim).str(), "this");
    }
  }

  DictReader reader;
  DiagnosticEngine &diags;
};

class Partition {
public:
  Partition(const Settings &s, const Degrees &degrees, Job &j) : settings(s), diags(s.diags), d(degrees), job(j) {}

  void run() {
    if (d.autoTP) {
      choose();
      compile();
    }
    for (const auto &[name, parameter] : settings.framework.linears) {
      job.switches[name] = present(name) ? outcome(name, parameter) : "absent";
    }
    reportSilent();
    if (d.tp > 1) {
      reportUncut();
      reportSums();
      reportHead();
    }
    if (d.autoEP) { // the routed experts and their router are AutoEP's
      job.switches["tp_gate"] = job.switches["tp_gate"] == "absent" ? "absent" : "whole";
    }
  }

private:
  // partition_config or a preset; else the model's plan.
  void choose() {
    const std::string preset = settings.text("tensor_parallel.preset_model");
    const std::vector<LayerSpec> *known = preset.empty() || preset == "plan" ? nullptr : settings.framework.preset(preset);
    if (!preset.empty() && !known) {
      std::vector<llvm::StringRef> names;
      for (const auto &entry : settings.framework.presets) {
        if (entry.first != "plan") {
          names.push_back(entry.first);
        }
      }
      DiagnosticBuilder builder = diags.emit<Diag::PresetPassedOver>(settings.place("tensor_parallel.preset_model"), preset);
      llvm::StringRef near = nearest(preset, names);
      builder.help(near.empty() ? "there is: " + llvm::join(names, ", ") : llvm::formatv("did you mean `{0}`?", near).str());
    }
    const Setting *config = settings.find(Section);
    if (config && config->node) {
      SpecReader reader(*config->node, diags);
      written = reader.read();
      strict = reader.strict;
      if (reader.defaults && known) {
        shipped = *known;
      }
      source = "`partition_config`";
      return;
    }
    const std::vector<LayerSpec> *specs = known ? known : settings.framework.preset("plan");
    shipped = specs ? *specs : std::vector<LayerSpec>();
    source = known ? "preset " + preset : "the tensor-parallel plan of the model";
  }

  void compile() {
    job.assumes.push_back("AutoTP cuts layers by " + source);
    if (sizeOf(job, "E") > 0 && !d.autoEP) {
      job.assumes.push_back("experts are fused, as transformers 5 has them: AutoTP cuts none of them, every rank has all");
    }
    for (const std::vector<LayerSpec> *specs : {&written, &shipped}) {
      for (const LayerSpec &spec : *specs) {
        compiled.push_back({&spec, {}});
        for (const Located<std::string> &pattern : spec.patterns) {
          llvm::Regex regex(posix(pattern.value));
          std::string error;
          if (!regex.isValid(error)) {
            diags.emit<Diag::BadPattern>(pattern.range, pattern.value, error);
            continue;
          }
          byLayer |= llvm::any_of(pattern.value, llvm::isDigit);
          compiled.back().patterns.push_back(std::move(regex));
        }
      }
    }
  }

  bool present(llvm::StringRef name) const {
    auto on = [&](const char *key) {
      auto it = job.switches.find(key);
      return it != job.switches.end() && (it->second == "true" || it->second == "True");
    };
    const bool latent = on("mla"), compressed = sizeOf(job, "Q") > 0;
    if (name == "tp_wq") {
      return !latent || !compressed;
    }
    if (name == "tp_wk" || name == "tp_wv") {
      return !latent;
    }
    if (name == "tp_q_norm" || name == "tp_k_norm") {
      return on("qk_norm");
    }
    if (name.starts_with("tp_wq_")) {
      return latent && compressed;
    }
    if (name.starts_with("tp_wkv_")) {
      return latent;
    }
    if (name.starts_with("tp_w") && name != "tp_wo") {
      return sizeOf(job, "dense_layers") > 0 || sizeOf(job, "E") == 0;
    }
    if (name.starts_with("tp_s")) {
      return sizeOf(job, "E") > 0 && sizeOf(job, "Fs") > 0;
    }
    return name != "tp_gate" || sizeOf(job, "E") > 0;
  }

  // The first spec that matches, and how many do.
  const LayerSpec *match(llvm::StringRef name, size_t &count) const {
    const LayerSpec *first = nullptr;
    count = 0;
    for (const CompiledSpec &c : compiled) {
      if (c.matches(name)) {
        first = first ? first : c.spec;
        count += llvm::any_of(written, [&](const LayerSpec &w) { return &w == c.spec; });
      }
    }
    return first;
  }

  std::string outcome(llvm::StringRef name, const std::string &parameter) {
    size_t count = 0;
    const LayerSpec *spec = match(parameter, count);
    if (count > 1) {
      diags.emit<Diag::SpecsOverlap>(spec->range, parameter, count);
    }
    if (byLayer) {
      checkLayers(parameter, spec);
    }
    const bool linear = name != "tp_embed" && name != "tp_head" && !name.ends_with("_norm") && !(d.autoEP && name == "tp_gate");
    if (!spec && strict.valid() && linear) {
      diags.emit<Diag::StrictUnmatched>(strict, parameter);
    }
    if (!spec || spec->type == "skip") {
      if (name.ends_with("_norm")) {
        return spec && spec->allreduce ? "summed" : "whole";
      }
      return "whole";
    }
    if (spec->shaped) {
      job.unchecked.push_back({"the parts of `" + parameter + "`", "`shape` cuts a fused weight, and this model has none"});
    }
    return spec->type == "row" ? "row" : spec->gather ? "gathered" : "column";
  }

  // Patterns with numbers may cut layers differently; the program has one kind of layer.
  void checkLayers(llvm::StringRef parameter, const LayerSpec *first) {
    const auto [before, after] = parameter.split(".0.");
    for (int64_t layer = 1; !after.empty() && layer < std::min<int64_t>(sizeOf(job, "layers"), 1000); ++layer) {
      size_t count = 0;
      if (match((before + "." + llvm::Twine(layer) + "." + after).str(), count) != first) {
        job.unchecked.push_back({"`" + parameter.str() + "` of other layers", "specs cut them differently, layer 0 stands for all"});
        return;
      }
    }
  }

  // Specs that cut something, and yet no layer is cut: the job is not tensor parallel at all.
  void reportUncut() {
    auto cuts = [](const LayerSpec &s) { return s.type != "skip"; };
    const bool wanted = llvm::any_of(written, cuts) || llvm::any_of(shipped, cuts);
    const bool any = llvm::any_of(settings.framework.linears, [&](const auto &entry) {
      const std::string &how = job.switches[entry.first];
      return how == "column" || how == "gathered" || how == "row";
    });
    if (!wanted || any) {
      return;
    }
    DiagnosticBuilder builder = diags.emit<Diag::NothingIsCut>(settings.place("tensor_parallel.autotp_size"), d.tp);
    if (!written.empty()) {
      builder.label(written.front().range, "no parameter is named as these specs say");
    } else if (settings.place("tensor_parallel.preset_model").valid()) {
      builder.label(settings.place("tensor_parallel.preset_model"), "no parameter is named as this preset says");
    }
    builder.note("every rank of a tensor-parallel group then does all the work of the group, in silence");
  }

  // Sums over tp of gradients that are whole on every rank. Not whole are those of layers that work on what another one has cut.
  void reportSums() {
    static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> Behind[] = {
        {"tp_q_norm", "tp_wq"}, {"tp_k_norm", "tp_wk"}, {"tp_wo", "tp_wv"}, {"tp_wo", "tp_wkv_b"}, {"tp_w2", "tp_w1"}, {"tp_s2", "tp_s1"}};
    auto check = [&](llvm::StringRef name, llvm::StringRef parameter) {
      size_t count = 0;
      const LayerSpec *spec = match(parameter, count);
      const bool cut = llvm::any_of(Behind, [&](const auto &b) { return b.first == name && job.switches[b.second.str()] == "column"; });
      if (spec && spec->type == "skip" && spec->allreduce && !cut) {
        diags.emit<Diag::RepeatedReduction>(spec->range, parameter, "tp", d.tp)
            .note(
                "`grad_allreduce` is for a whole weight that works on what is cut, as norms of queries and keys do on the heads of a rank")
            .help("leave `grad_allreduce` out");
      }
    };
    for (const auto &[name, parameter] : settings.framework.linears) {
      if (present(name) && name != "tp_wkv_a") { // its rotary part is not whole
        check(name, parameter);
      }
    }
    for (llvm::StringRef norm : Norms) {
      if (!norm.contains("_a_layernorm") || present("tp_wkv_a")) {
        check("", norm);
      }
    }
  }

  // The loss takes whole logits; a head that is also the embedding is cut in neither place or in both.
  void reportHead() {
    const std::string &how = job.switches["tp_head"];
    size_t count = 0;
    const LayerSpec *spec = how == "column" ? match("lm_head.weight", count) : nullptr;
    if (spec) {
      diags.emit<Diag::KeysConflict>(spec->range, "a column of `lm_head.weight` on each rank", "a loss of whole logits")
          .help("write `gather_output`: true");
    }
    if (how == "row" && job.switches.count("tied") && llvm::StringRef(job.switches["tied"]).equals_insensitive("true")) {
      job.unchecked.push_back({"`lm_head.weight`", "it is the embedding too, from which cutting it in rows parts it"});
    }
  }

  // Written specs that name nothing: the layers stay whole, and nobody says so.
  void reportSilent() {
    static constexpr llvm::StringLiteral Experts[] = {"model.layers.0.mlp.experts.gate_up_proj", "model.layers.0.mlp.experts.down_proj"};
    for (const LayerSpec &spec : written) {
      for (const Located<std::string> &pattern : spec.patterns) {
        const llvm::Regex regex(posix(pattern.value));
        auto hits = [&](llvm::StringRef parameter) { return regex.match(parameter); };
        bool any = !regex.isValid() || llvm::any_of(Norms, hits) || llvm::any_of(Experts, hits);
        bool parent = false;
        for (const auto &[name, parameter] : settings.framework.linears) {
          any |= present(name) && regex.match(parameter);
          llvm::StringRef module = parameter;
          parent |= module.consume_back(".weight") && present(name) && regex.match(module);
        }
        if (any || byLayer) {
          continue;
        }
        DiagnosticBuilder builder = diags.emit<Diag::SpecMatchesNothing>(pattern.range, pattern.value);
        builder.note("what no spec matches stays whole on every rank, in silence");
        if (parent) {
          builder.help("patterns are matched against the parameter's name, which ends in `.weight`");
        }
      }
    }
  }

  const Settings &settings;
  DiagnosticEngine &diags;
  const Degrees &d;
  Job &job;
  std::vector<LayerSpec> written, shipped;
  std::vector<CompiledSpec> compiled;
  std::string source;
  SourceRange strict;
  bool byLayer = false;
};

// Heads that the ranks get: kv // tp, and one more on the first kv % tp ranks.
std::string headsPerRank(int64_t heads, int64_t tp) {
  const int64_t more = heads % tp;
  return llvm::formatv("{0} on the first {1} ranks, {2} on the others", heads / tp + 1, more, heads / tp);
}

bool checkHeads(const Settings &settings, const Degrees &d, Job &job) {
  const auto &cuts = job.switches;
  const bool latent = sizeOf(job, "C") > 0;
  const llvm::StringRef by = latent ? "tp_wkv_b" : "tp_wk";
  if (cuts.at(by.str()) != "column" && cuts.at(by.str()) != "gathered") {
    return true;
  }
  const int64_t heads = latent ? sizeOf(job, "N") : sizeOf(job, "G");
  const SourceRange place = placeOf(settings, d, "tensor_parallel.autotp_size");
  if (heads % d.tp == 0) {
    return true;
  }
  if (heads < d.tp) {
    settings.diags.emit<Diag::RanksWithoutHeads>(place, heads, d.tp, d.tp - heads)
        .note("DeepSpeed warns only; the attention of these ranks works on nothing");
    return false;
  }
  settings.diags.emit<Diag::HeadsUneven>(place, heads, d.tp, headsPerRank(heads, d.tp));
  job.unchecked.push_back({"attention over uneven heads", "it is checked as if every rank held all of them"});
  for (const char *name : {"tp_wq", "tp_wk", "tp_wv", "tp_wo", "tp_wq_b", "tp_wkv_b"}) {
    if (cuts.at(name) != "absent") {
      job.switches[name] = "whole";
    }
  }
  return true;
}

// Where AutoEP shares the ranks, gradients behind an expert block differ over tp until they are corrected at the end of the step.
// A layer that is cut takes each rank's own for the whole.
bool checkUpstream(const Settings &settings, const Degrees &d, const Job &job) {
  if (!d.folded || sizeOf(job, "E") == 0) {
    return true;
  }
  std::vector<std::string> cut;
  for (const auto &[name, parameter] : settings.framework.linears) {
    const std::string &how = job.switches.at(name);
    const bool before = !llvm::StringRef(name).starts_with("tp_s") && name != "tp_head" && name != "tp_gate";
    if (before && (how == "column" || how == "gathered" || how == "row")) {
      cut.push_back("`" + llvm::StringRef(parameter).rsplit('.').first.rsplit('.').second.str() + "`");
    }
  }
  if (!cut.empty()) {
    settings.diags.emit<Diag::CutBeforeExperts>(placeOf(settings, d, "tensor_parallel.autotp_size"), llvm::join(cut, ", "))
        .note("the gradient that an expert block hands back is a part of its own on each tensor-parallel rank; it is averaged at the end "
              "of the step, but a layer that is cut takes it for the whole before")
        .help("leave the layers before expert blocks whole: `partition_type` skip");
  }
  return true;
}

} // namespace

bool addTensorParallel(const Settings &settings, const Degrees &degrees, Job &job) {
  if (!degrees.autoTP) {
    for (llvm::StringRef key : {"tensor_parallel.preset_model", "tensor_parallel.partition_config"}) {
      if (settings.find(key)) {
        settings.diags.emit<Diag::KeyWithoutEffect>(settings.place(key), key, "`tensor_parallel.autotp_size` is 0: AutoTP is off");
      }
    }
  }
  for (llvm::StringRef inner : {"tensor_parallel", "tp"}) {
    const std::string key = ("tensor_parallel." + inner + ".tp_size").str();
    const int64_t size = settings.integer(key);
    if (size != 1 && size != degrees.tp) {
      settings.diags.emit<Diag::OutOfRange>(settings.place(key), key, llvm::formatv("1 or autotp_size {0}", degrees.tp).str(), size);
    }
  }
  for (const auto &entry : settings.framework.linears) {
    job.switches[entry.first] = "absent";
  }
  if (job.family.empty()) {
    return true;
  }
  Partition(settings, degrees, job).run();
  if (degrees.tp > 1 && job.switches["tp_wkv_b"] == "column") {
    job.unchecked.push_back(
        {"the gradient of the keys' rotary part", "each rank has that of its own heads, and who sums them is not known"});
  }
  return degrees.tp == 1 || (checkHeads(settings, degrees, job) && checkUpstream(settings, degrees, job));
}

} // namespace shardc::deepspeed
