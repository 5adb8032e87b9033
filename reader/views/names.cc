// Names of all context nodes of a profile (see names.h).
#include "reader/views/names.h"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include "reader/views/function_name.h"

namespace traceaf::reader::views {
namespace {

struct AddressKey {
  uint32_t module;
  uint64_t offset;
  bool operator==(const AddressKey& other) const { return module == other.module && offset == other.offset; }
};
struct AddressHash {
  size_t operator()(const AddressKey& key) const {
    return static_cast<size_t>((key.offset ^ (uint64_t{key.module} << 48)) * 0x9e3779b97f4a7c15U);
  }
};

class Builder {
 public:
  Builder(const Profile& profile, Names& names) : profile_(profile), names_(names) {}

  void run(const Resolve& resolve) {
    collect();
    std::vector<std::vector<SourceFrame>> resolved;
    if (resolve) {
      resolved = resolve(addresses_);
      resolved.resize(addresses_.size());
    }
    std::vector<std::vector<FrameId>> frames(addresses_.size());
    for (size_t i = 0; i < addresses_.size(); ++i) {
      const std::string raw = raw_name(profile_, addresses_[i].module, addresses_[i].offset);
      if (!resolve || resolved[i].empty()) {
        frames[i] = {intern({raw, {}, 0, 0, false}, addresses_[i].module, false)};
        ++names_.unresolved;
        continue;
      }
      const bool named = resolved[i].front().function != raw;
      if (!named) ++names_.unresolved;
      for (const SourceFrame& frame : resolved[i]) frames[i].push_back(intern(frame, addresses_[i].module, named));
    }
    names_.addresses = addresses_.size();
    spread(frames);
  }

 private:
  static constexpr uint32_t kNoAddress = ~uint32_t{0};

  void collect() {
    tsl::robin_map<AddressKey, uint32_t, AddressHash> seen;
    address_of_.assign(profile_.nodes.size(), kNoAddress);
    for (size_t n = wire::kFirstNode; n < profile_.nodes.size(); ++n) {
      const Node& node = profile_.nodes[n];
      if (!node.defined) continue;
      const auto [at, added] = seen.try_emplace({node.module, node.offset}, static_cast<uint32_t>(addresses_.size()));
      if (added) addresses_.push_back({node.module, node.offset});
      address_of_[n] = at->second;
    }
  }

  FrameId intern(const SourceFrame& source, uint32_t module, bool named) {
    std::string key = fmt::format("{}\n{}\n{}\n{}", source.function, source.file, source.line, module);
    const auto [at, added] = ids_.try_emplace(std::move(key), static_cast<FrameId>(names_.frames.size()));
    if (added) {
      Frame frame;
      frame.function = source.function;
      frame.short_name = short_function(source.function);
      frame.file = source.file;
      frame.line = source.line;
      frame.inlined = source.inlined;
      frame.named = named;
      if (module < profile_.modules.size()) frame.module = profile_.modules[module].path;
      frame.plumbing = is_plumbing(frame.function, frame.file, frame.module);
      names_.frames.push_back(std::move(frame));
    }
    return at->second;
  }

  // The same frame reached by a guess.
  FrameId guessed(FrameId frame) {
    const auto [at, added] = guessed_.try_emplace(frame, static_cast<FrameId>(names_.frames.size()));
    if (added) {
      Frame copy = names_.frames[frame];
      copy.guessed = true;
      names_.frames.push_back(std::move(copy));
    }
    return at->second;
  }

  void spread(const std::vector<std::vector<FrameId>>& frames) {
    FrameId lost = kNoAddress;
    names_.begin.reserve(profile_.nodes.size() + 1);
    for (size_t n = 0; n < profile_.nodes.size(); ++n) {
      names_.begin.push_back(static_cast<uint32_t>(names_.frame_of.size()));
      if (n < wire::kFirstNode) continue;
      if (address_of_[n] != kNoAddress) {
        const auto& of_node = frames[address_of_[n]];
        names_.frame_of.insert(names_.frame_of.end(), of_node.begin(), of_node.end());
        if (profile_.nodes[n].guessed && !of_node.empty()) {
          FrameId& innermost = names_.frame_of[names_.begin.back()];
          innermost = guessed(innermost);
        }
        continue;
      }
      if (lost == kNoAddress) lost = intern({"[frame lost]", {}, 0, 0, false}, kNoAddress, false);
      names_.frame_of.push_back(lost);
    }
    names_.begin.push_back(static_cast<uint32_t>(names_.frame_of.size()));
  }

  const Profile& profile_;
  Names& names_;
  std::vector<Symbolizer::Address> addresses_;
  std::vector<uint32_t> address_of_;
  tsl::robin_map<std::string, FrameId> ids_;
  tsl::robin_map<FrameId, FrameId> guessed_;
};

}  // namespace

std::string raw_name(const Profile& profile, uint32_t module, uint64_t offset) {
  if (module == 0 || module >= profile.modules.size()) return fmt::format("0x{:x}", offset);
  const std::string& path = profile.modules[module].path;
  const std::string_view base = std::string_view(path).substr(path.rfind('/') + 1);
  return fmt::format("{}+0x{:x}", base.empty() ? "?" : base, offset);
}

Names resolve_names(const Profile& profile, const Resolve& resolve) {
  Names names;
  names.symbols = static_cast<bool>(resolve);
  Builder(profile, names).run(resolve);
  return names;
}

}  // namespace traceaf::reader::views
