// The order of the search, and the sentences that tell the user why a module has no names.
#include "reader/symbols/locate.h"

#include <fmt/format.h>

#include <cstdlib>

#include "emitter/wire/rows.h"

namespace traceaf::reader::symbols {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  free(real);
  return result;
}

// `path` below the sysroot first, when there is one.
std::vector<std::string> rooted(const std::string& path, const SymbolOptions& options) {
  std::vector<std::string> result;
  if (!options.sysroot.empty() && path.starts_with('/')) {
    std::string root = options.sysroot;
    while (root.size() > 1 && root.ends_with('/')) root.pop_back();
    result.push_back(root + path);
  }
  result.push_back(path);
  return result;
}

std::vector<std::string> debug_roots(const SymbolOptions& options) {
  std::vector<std::string> result;
  for (const std::string& dir : options.debug_dirs) {
    for (std::string& path : rooted(dir, options)) result.push_back(std::move(path));
  }
  return result;
}

// The first file of that build id below the debug directories; `suffix` is ".debug" or "" (the program itself).
std::unique_ptr<ElfFile> by_build_id(const std::string& id, std::string_view suffix, const SymbolOptions& options) {
  if (id.size() < 4 || id.find_first_not_of("0123456789abcdef") != std::string::npos) return nullptr;
  for (const std::string& root : debug_roots(options)) {
    std::string why;
    auto file = ElfFile::open(fmt::format("{}/.build-id/{}/{}{}", root, id.substr(0, 2), id.substr(2), suffix), why);
    if (file != nullptr && file->build_id() == id) return file;
  }
  return nullptr;
}

std::unique_ptr<ElfFile> by_debug_link(const ElfFile& main, const std::string& build_id, const SymbolOptions& options,
                                       std::string& refused) {
  if (!main.debug_link()) return nullptr;
  const ElfFile::DebugLink& link = *main.debug_link();
  std::vector<std::string> candidates;
  std::vector<std::string> folders = {directory_of(main.path())};
  if (std::string real = directory_of(resolved(main.path())); real != folders[0]) folders.push_back(std::move(real));
  for (const std::string& folder : folders) {
    candidates.push_back(folder + "/" + link.name);
    candidates.push_back(folder + "/.debug/" + link.name);
    for (const std::string& root : debug_roots(options)) {
      candidates.push_back(fmt::format("{}/{}/{}", root, folder, link.name));
    }
  }
  for (const std::string& candidate : candidates) {
    std::string why;
    auto file = ElfFile::open(candidate, why);
    if (file == nullptr) continue;
    if (resolved(candidate) == resolved(main.path())) continue;
    // A build id proves more than the checksum and costs less.
    const bool fits =
        !build_id.empty() && !file->build_id().empty() ? file->build_id() == build_id : file->crc() == link.crc;
    if (fits) return file;
    refused = fmt::format("debug file {} belongs to another build and was not used", candidate);
  }
  return nullptr;
}

void find_main(const Module& module, const SymbolOptions& options, Files& files) {
  const std::string plain = plain_path(module.path);
  const bool deleted = plain != module.path;
  if (plain.empty()) {
    files.failure = SymbolState::kMissing;
    files.note = "the trace has no file name for it";
    return;
  }
  std::string missing;
  for (const std::string& path : rooted(plain, options)) {
    std::string why;
    auto file = ElfFile::open(path, why);
    if (file == nullptr) {
      if (why == "not an ELF file") {
        files.failure = SymbolState::kUnsupported;
        files.note = fmt::format("{} is not an ELF file", path);
      }
      missing = fmt::format("{}: {}", path, why);
      continue;
    }
    if (module.build_id.empty()) {
      if (deleted) {
        missing = fmt::format("{} was deleted and the trace has no build id to check a file of that name", plain);
        continue;
      }
      files.failure = SymbolState::kNotLoaded;
      files.note.clear();
      files.main = std::move(file);
      return;
    }
    if (file->build_id() == module.build_id) {
      files.failure = SymbolState::kNotLoaded;
      files.note.clear();
      files.main = std::move(file);
      return;
    }
    files.failure = SymbolState::kMismatch;
    files.note = fmt::format(
        "{} has build id {}, the trace was recorded with {}; it was rebuilt or upgraded since and is not used, keep "
        "the "
        "recorded file and name its folder as sysroot",
        path, file->build_id().empty() ? "none" : file->build_id(), module.build_id);
  }
  files.main = by_build_id(module.build_id, "", options);
  if (files.main != nullptr) {
    files.failure = SymbolState::kNotLoaded;
    files.note.clear();
  } else if (files.failure == SymbolState::kNotLoaded) {
    files.failure = SymbolState::kMissing;
    files.note = missing + "; copy it from the machine that recorded and name its folder as sysroot";
  }
}

}  // namespace

std::string plain_path(const std::string& recorded) {
  return recorded.ends_with(kDeleted) ? recorded.substr(0, recorded.size() - kDeleted.size()) : recorded;
}

Files locate(const Module& module, const SymbolOptions& options) {
  Files files;
  if ((module.flags & wire::kModuleVdso) != 0) {
    files.failure = SymbolState::kMissing;
    files.note = "code that the kernel provides (vdso), it has no file";
    return files;
  }
  find_main(module, options, files);
  if (files.main != nullptr && files.main->has_debug_info()) return files;

  const std::string& id = module.build_id.empty() && files.main != nullptr ? files.main->build_id() : module.build_id;
  files.debug = by_build_id(id, ".debug", options);
  if (files.debug == nullptr && files.main != nullptr) {
    files.debug = by_debug_link(*files.main, id, options, files.note);
  }
  if (files.debug == nullptr) return files;
  files.note.clear();
  files.failure = SymbolState::kNotLoaded;
  if (files.main != nullptr) files.debug_shift = files.main->shift_of(*files.debug);
  return files;
}

std::unique_ptr<ElfFile> locate_alternate(const ElfFile& from, const std::string& name, const std::string& build_id,
                                          const SymbolOptions& options) {
  std::vector<std::string> candidates;
  if (name.starts_with('/')) {
    candidates = rooted(name, options);
  } else if (!name.empty()) {
    candidates.push_back(directory_of(resolved(from.path())) + "/" + name);
    candidates.push_back(directory_of(from.path()) + "/" + name);
  }
  for (const std::string& candidate : candidates) {
    std::string why;
    auto file = ElfFile::open(candidate, why);
    if (file != nullptr && file->build_id() == build_id && file->has_debug_info()) return file;
  }
  auto file = by_build_id(build_id, ".debug", options);
  return file != nullptr && file->has_debug_info() ? std::move(file) : nullptr;
}

}  // namespace traceaf::reader::symbols
