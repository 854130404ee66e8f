// Ids: 32-bit typed indices, and the table that turns names into ids.
//
// Every entity of the IR is an index into a vector that one owner holds. An id is copyable, comparable and printable;
// it is never a pointer, so owners can be copied and serialised.
#pragma once

#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include <compare>
#include <cstdint>
#include <vector>

namespace shardc {

// An index into the vector of entities that `Tag` names. A default-constructed id refers to nothing.
template <class Tag> struct Id {
  static constexpr uint32_t None = ~uint32_t(0);
  uint32_t index = None;

  constexpr Id() = default;
  constexpr explicit Id(size_t i) : index(static_cast<uint32_t>(i)) {}
  constexpr bool valid() const { return index != None; }
  constexpr auto operator<=>(const Id &) const = default;
};

using NameId = Id<struct NameTag>;
using AtomId = Id<struct AtomTag>;
using TypeId = Id<struct TypeTag>;
using OriginId = Id<struct OriginTag>;
using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using AttrsId = Id<struct AttrsTag>;
using FunctionId = Id<struct FunctionTag>;
using FileId = Id<struct FileTag>;

// Interned strings; equal strings have equal ids. Ids are given in order of first use.
class NameTable {
public:
  NameId intern(llvm::StringRef text) {
    auto [it, isNew] = ids.try_emplace(text, NameId(texts.size()));
    if (isNew) {
      texts.push_back(it->getKey());
    }
    return it->second;
  }
  // The id of `text` if it was interned before, otherwise an invalid id.
  NameId find(llvm::StringRef text) const {
    auto it = ids.find(text);
    return it == ids.end() ? NameId() : it->second;
  }
  // "" for an invalid id.
  llvm::StringRef str(NameId id) const { return id.valid() ? texts[id.index] : llvm::StringRef(); }
  size_t size() const { return texts.size(); }

private:
  llvm::StringMap<NameId> ids; // owns the characters
  std::vector<llvm::StringRef> texts;
};

} // namespace shardc

template <class Tag> struct llvm::DenseMapInfo<shardc::Id<Tag>> {
  static shardc::Id<Tag> getEmptyKey() { return shardc::Id<Tag>(size_t(0xfffffffe)); }
  static shardc::Id<Tag> getTombstoneKey() { return shardc::Id<Tag>(size_t(0xfffffffd)); }
  static unsigned getHashValue(shardc::Id<Tag> id) { return DenseMapInfo<uint32_t>::getHashValue(id.index); }
  static bool isEqual(shardc::Id<Tag> a, shardc::Id<Tag> b) { return a == b; }
};
