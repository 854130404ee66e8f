// TypesJson: every value of every layer with its type, and every change of layout in both directions. See Emit/Types.h.
#include "Expansion.h"
#include "shardc/Emit/Json.h"
#include "shardc/Emit/Types.h"
#include "shardc/IR/Text.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace shardc {

namespace {

// The texts of one type, made once however many layers use it.
struct TypeTexts {
  std::string type;
  std::string gradient;
  llvm::json::Array shape;
};

class JsonWriter {
public:
  JsonWriter(llvm::json::OStream &stream, const TypedModule &program, const TypesOptions &options)
      : json(stream), typed(program), expansion(program), filter(options.modulePattern), view(options.view) {}

  void write() {
    std::vector<Located> moves;
    json.attributeBegin("values");
    json.arrayBegin();
    expansion.visit(
        {[&](llvm::StringRef path, const Instance &) { return filter.selects(path); },
         [&](llvm::StringRef path, const Instance &instance, ValueId value, uint32_t run) { writeValue(path, instance, value, run); },
         [&](llvm::StringRef path, const Instance &instance, const Move &move) {
           moves.push_back({expansion.fullName(path, instance, move.value), &instance, &move});
         }});
    json.arrayEnd();
    json.attributeEnd();
    json.attributeArray("changes", [&] {
      for (const Located &at : moves) {
        writeChange(at.value, forwardText(typed, *at.move, viewOf(*at.instance)), "forward");
      }
      // The backward pass runs the other way round.
      for (const Located &at : llvm::reverse(moves)) {
        if (const std::optional<MoveText> text = gradientText(typed, *at.instance, *at.move, viewOf(*at.instance))) {
          writeChange(at.value, *text, "gradient");
        }
      }
    });
  }

private:
  struct Located {
    std::string value;
    const Instance *instance;
    const Move *move;
  };

  // The view that was asked for, or that of the module a value stands in.
  llvm::StringRef viewOf(const Instance &instance) const {
    return view.empty() ? typed.module.viewOf(typed.module.function(instance.function)) : llvm::StringRef(view);
  }

  const TypeTexts &textsOf(TypeId id, uint32_t gradient, llvm::StringRef vocabulary) {
    std::optional<TypeTexts> &text = texts[{id.index, gradient, vocabulary}];
    if (!text) {
      const Module &module = typed.module;
      const Type &type = module.types[id];
      text.emplace();
      text->type = print(type, module, vocabulary);
      text->gradient = expansion.gradientText(type, gradient, vocabulary);
      for (int64_t extent : localShape(type, 0, module.axes)) {
        text->shape.push_back(extent < 0 ? llvm::json::Value(nullptr) : llvm::json::Value(extent));
      }
    }
    return *text;
  }

  void writeValue(llvm::StringRef path, const Instance &instance, ValueId value, uint32_t run) {
    const TypeId id = value.index < instance.values.size() ? instance.values[value.index] : TypeId();
    json.object([&] {
      json.attribute("name", jsonText(expansion.fullName(path, instance, value)));
      if (!id.valid()) {
        json.attribute("type", nullptr);
        json.attribute("gradient", nullptr);
        json.attribute("local_shape", nullptr);
        return;
      }
      const TypeTexts &text = textsOf(id, expansion.gradientOf(run, value), viewOf(instance));
      json.attribute("type", jsonText(text.type));
      json.attribute("gradient", jsonText(text.gradient));
      json.attributeArray("local_shape", [&] {
        for (const llvm::json::Value &extent : text.shape) {
          json.value(extent);
        }
      });
    });
  }

  void writeChange(llvm::StringRef value, const MoveText &text, llvm::StringRef direction) {
    json.object([&] {
      json.attribute("value", jsonText(value));
      json.attribute("from", jsonText(text.from));
      json.attribute("to", jsonText(text.to));
      json.attribute("collective", text.collective);
      json.attributeArray("axes", [&] {
        llvm::SmallVector<llvm::StringRef, 4> axes;
        llvm::StringRef(text.axes).split(axes, ',', -1, false);
        for (llvm::StringRef axis : axes) {
          json.value(jsonText(axis));
        }
      });
      json.attribute("ranks", text.ranks);
      json.attribute("bytes", text.bytes ? llvm::json::Value(*text.bytes) : llvm::json::Value(nullptr));
      json.attribute("direction", direction);
    });
  }

  llvm::json::OStream &json;
  const TypedModule &typed;
  Expansion expansion;
  ModuleFilter filter;
  std::string view;
  std::map<std::tuple<uint32_t, uint32_t, llvm::StringRef>, std::optional<TypeTexts>> texts; // by type, gradient and view
};

} // namespace

void writeTypesJson(llvm::raw_ostream &out, const JobReport &job, const TypesOptions &options) {
  llvm::json::OStream json(out, 2);
  json.object([&] {
    writeJsonHead(json);
    json.attribute("job", jsonText(job.job));
    json.attribute("verdict", verdictName(job.report.verdict));
    writeJsonFindings(json, job.diags);
    if (job.typed) {
      JsonWriter(json, *job.typed, options).write();
    } else {
      json.attributeArray("values", [] {});
      json.attributeArray("changes", [] {});
    }
  });
  out << '\n';
}

} // namespace shardc
