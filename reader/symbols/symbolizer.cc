// Groups addresses by module, resolves the modules in parallel, and gives a name to what stays unknown.
#include "reader/symbols/symbolizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "emitter/wire/rows.h"
#include "reader/symbols/locate.h"
#include "reader/symbols/module_symbols.h"

namespace traceaf::reader {
namespace {

std::string short_name(const Module& module, uint32_t index) {
  if ((module.flags & wire::kModuleVdso) != 0) return "[vdso]";
  const std::string path = symbols::plain_path(module.path);
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.empty() ? fmt::format("[module {}]", index) : name;
}

}  // namespace

struct Symbolizer::Impl {
  const std::vector<Module>& modules;
  SymbolOptions options;
  std::vector<ModuleCoverage> coverage;

  // One module's share of a call: positions in `addresses`, ascending by offset.
  struct Task {
    uint32_t module;
    std::vector<size_t> positions;
  };
  void run(const Task& task, const std::vector<Address>& addresses, std::vector<std::vector<SourceFrame>>& out);
};

void Symbolizer::Impl::run(const Task& task, const std::vector<Address>& addresses,
                           std::vector<std::vector<SourceFrame>>& out) {
  const Module& module = modules[task.module];
  ModuleCoverage& covered = coverage[task.module];
  std::vector<uint64_t> unique;
  for (const size_t i : task.positions) {
    const uint64_t address = module.start + addresses[i].offset - module.bias;
    if (unique.empty() || unique.back() != address) unique.push_back(address);
  }
  // `start + offset - bias` wraps around for no module that was ever loaded, but a trace may say anything.
  const bool sorted = std::is_sorted(unique.begin(), unique.end());
  symbols::ModuleResult result;
  if (sorted) {
    try {
      result = symbols::resolve_module(module, unique, options);
    } catch (const std::exception& e) {
      result = {};
      result.state = SymbolState::kUnsupported;
      result.note = fmt::format("its symbols could not be read ({})", e.what());
    }
  } else {
    result.state = SymbolState::kUnsupported;
    result.note = "the trace has impossible addresses for it";
  }
  result.frames.resize(unique.size());
  covered.state = result.state;
  covered.debug_file = std::move(result.debug_file);
  covered.note = std::move(result.note);
  covered.addresses += unique.size();
  const std::string name = short_name(module, task.module);
  for (size_t u = 0; u < unique.size(); ++u) {
    std::vector<SourceFrame>& frames = result.frames[u];
    if (frames.empty()) frames.emplace_back();
    if (frames.back().function.empty()) ++covered.unresolved;
    for (SourceFrame& frame : frames) {
      if (frame.function.empty()) frame.function = fmt::format("{}+{:#x}", name, unique[u]);
    }
  }
  size_t u = 0;
  for (size_t p = 0; p < task.positions.size(); ++p) {
    const size_t i = task.positions[p];
    const bool last_use =
        p + 1 == task.positions.size() || addresses[task.positions[p + 1]].offset != addresses[i].offset;
    if (last_use) {
      out[i] = std::move(result.frames[u++]);
    } else {
      out[i] = result.frames[u];
    }
  }
}

Symbolizer::Symbolizer(const std::vector<Module>& modules, SymbolOptions options)
    : impl_(new Impl{modules, std::move(options), {}}) {
  impl_->coverage.resize(modules.size());
  for (size_t i = 0; i < modules.size(); ++i) impl_->coverage[i].module = static_cast<uint32_t>(i);
}

Symbolizer::~Symbolizer() = default;

std::vector<std::vector<SourceFrame>> Symbolizer::resolve(const std::vector<Address>& addresses) {
  std::vector<std::vector<SourceFrame>> out(addresses.size());
  std::vector<size_t> order;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].module != 0 && addresses[i].module < impl_->modules.size()) {
      order.push_back(i);
      continue;
    }
    SourceFrame frame;
    frame.function = addresses[i].module == 0
                         ? fmt::format("{:#x}", addresses[i].offset)
                         : fmt::format("[module {}]+{:#x}", addresses[i].module, addresses[i].offset);
    out[i].push_back(std::move(frame));
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (addresses[a].module != addresses[b].module) return addresses[a].module < addresses[b].module;
    return addresses[a].offset < addresses[b].offset;
  });
  std::vector<Impl::Task> tasks;
  for (const size_t i : order) {
    if (tasks.empty() || tasks.back().module != addresses[i].module) tasks.push_back({addresses[i].module, {}});
    tasks.back().positions.push_back(i);
  }
  // The longest first, so that no thread is left alone with it at the end.
  std::sort(tasks.begin(), tasks.end(),
            [](const Impl::Task& a, const Impl::Task& b) { return a.positions.size() > b.positions.size(); });

  std::atomic<size_t> next{0};  // shared by the workers; relaxed: it only hands out numbers
  const auto work = [&] {
    for (size_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks.size();) {
      impl_->run(tasks[t], addresses, out);  // writes only what belongs to the module
    }
  };
  const size_t workers = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), tasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers; ++i) {
    try {
      threads.emplace_back(work);
    } catch (const std::exception&) {
      break;  // no more threads to be had: those that run do the rest
    }
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return out;
}

std::vector<ModuleCoverage> Symbolizer::coverage() const { return impl_->coverage; }

}  // namespace traceaf::reader
