// Profiles and names made by hand (see sample_profile.h).
#include "sample_profile.h"

#include <fmt/format.h>

#include "emitter/wire/entries.h"
#include "emitter/wire/events.h"
#include "reader/views/render.h"

namespace traceaf::test {

using reader::SourceFrame;

Sample::Sample() {
  profile.nodes.resize(wire::kFirstNode);
  profile.modules.resize(2);
  profile.modules[1].id = 1;
  profile.modules[1].path = "/opt/app/bin/app";
  profile.modules[1].build_id = "abcd";
  profile.modules[1].start = 0x400000;
  profile.modules[1].end = 0x500000;
}

uint32_t Sample::frame(uint32_t parent, const std::string& function, const std::string& file, uint32_t line) {
  return inlined(parent, {{function, file, line, 0, false}});
}

uint32_t Sample::inlined(uint32_t parent, std::vector<SourceFrame> frames) {
  const auto node = static_cast<uint32_t>(profile.nodes.size());
  const uint64_t offset = 0x1000 + 0x10 * uint64_t{node};
  profile.nodes.push_back({parent, 1, offset, true});
  if (!frames[0].function.empty()) named[offset] = std::move(frames);
  return node;
}

reader::Site& Sample::site(uint32_t node, uint8_t entry, uint64_t size, uint64_t allocated, uint64_t live,
                           uint64_t peak) {
  reader::Site site;
  site.node = node;
  site.entry = entry;
  site.allocated = {allocated, allocated * size};
  site.live = {live, live * size};
  site.freed = {allocated - live, (allocated - live) * size};
  site.peak = {peak, peak * size};
  profile.sites.push_back(site);
  return profile.sites.back();
}

void Sample::total() {
  for (const reader::Site& site : profile.sites) {
    for (const auto& [to, from] :
         {std::pair{&profile.allocated, &site.allocated}, std::pair{&profile.freed, &site.freed},
          std::pair{&profile.live, &site.live}, std::pair{&profile.peak, &site.peak},
          std::pair{&profile.temporary, &site.temporary}}) {
      to->count += from->count;
      to->bytes += from->bytes;
    }
  }
}

reader::views::Names Sample::names() const {
  auto names = reader::views::resolve_names(profile, [this](const std::vector<reader::Symbolizer::Address>& addresses) {
    std::vector<std::vector<SourceFrame>> frames;
    for (const auto& address : addresses) {
      const auto at = named.find(address.offset);
      frames.push_back(at != named.end()
                           ? at->second
                           : std::vector<SourceFrame>{{fmt::format("app+0x{:x}", address.offset), {}, 0, 0, false}});
    }
    return frames;
  });
  names.coverage = coverage;
  return names;
}

Sample whole_run() {
  Sample s;
  auto& p = s.profile;
  constexpr auto kComplete = static_cast<uint32_t>(wire::NodeRoot::kComplete);
  const uint32_t main = s.frame(kComplete, "main", "/src/app/main.c", 80);
  const uint32_t load = s.frame(main, "load_file", "/src/app/main.c", 44);
  const uint32_t parse = s.frame(load, "parse_line(char const*)", "/src/app/parse.cc", 120);
  const uint32_t push =
      s.inlined(parse, {{"std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)", "stl.h", 7, 0, true},
                        {"add(int)", "/src/app/parse.cc", 99, 0, false}});
  const uint32_t alloc = s.frame(push, "operator new(unsigned long)");
  s.site(parse, static_cast<uint8_t>(wire::Entry::k_malloc), 1024, 12288, 0, 12288).lifetime_ns =
      uint64_t{12288} * 1000000;
  auto& leak = s.site(alloc, static_cast<uint8_t>(wire::Entry::k_new_), 100, 5000, 1000, 4000);
  leak.temporary = {1500, 150000};
  leak.first_birth_ns = 2000000;
  leak.last_birth_ns = 900000000;
  s.site(load, static_cast<uint8_t>(wire::Entry::k_calloc), 1, 1, 1, 0);
  s.total();
  p.modules.push_back({2, 0, 0x7f00, 0x7fff, 0x7f00, "", "/usr/lib/libbar.so.1"});
  s.coverage = {{1, reader::SymbolState::kDebugInfo, "/usr/lib/debug/app", "", 5, 0},
                {2, reader::SymbolState::kSymbolTable, "", "no debug information", 2, 1}};
  p.process.pid = 1234;
  p.process.ppid = 1;
  p.process.exe = "/opt/app/bin/app";
  p.process.command = {"app", "-x", "a file"};
  p.process.host = "box";
  p.process.version = "0.1.0";
  p.process.start_wall_ns = uint64_t{1700000000} * 1000000000;
  p.ending.complete = true;
  p.ending.has_end = true;
  p.ending.reason = wire::EndReason::kExit;
  p.duration_ns = 1530000000;
  p.peak_time_ns = 700000000;
  p.moves = 7;
  p.lifetimes[10] = {9000, 900000};
  p.lifetimes[24] = {7000, 700000};
  p.generations = {{1, 0, 1000000000, 20000, 9, 70000, true}, {2, 1000000000, 1530000000, 13579, 4, 30000, true}};
  p.events = 33579;
  p.events_by_type[static_cast<uint8_t>(wire::Ev::kHeapObjectAlloc)] = p.allocated.count;
  p.events_by_type[static_cast<uint8_t>(wire::Ev::kHeapObjectFree)] = p.freed.count;
  p.counters[static_cast<uint8_t>(wire::Counter::k_events)] = p.events;
  p.threads = {
      {1,
       1234,
       wire::kThreadMain,
       "app",
       0,
       0x7f0000000000,
       8388608,
       {17000, 13000000},
       {16000, 12800000},
       {1500, 150000},
       33000},
      {2, 1240, wire::kThreadEnded, "worker", 5000000, 0x7e0000000000, 65536, {289, 82913}, {288, 82000}, {0, 0}, 579},
      {3, 1241, wire::kThreadFlusher, "", 0, 0, 0, {}, {}, {}, 0}};
  p.spans = {{wire::SpanSource::kBrk, 0x1000000, 14680064, 1, 0, false, {900, 90000}},
             {wire::SpanSource::kMmap, 0x7f1000000000, 1048576, 1, 0, true, {101, 10001}}};
  p.spans_peak = {3, 20000000};
  p.span_allocs = 3;
  p.span_frees = 1;
  return s;
}

namespace {
std::string render(void (*how)(const reader::views::Document&, const reader::views::Out&),
                   const reader::views::Document& document) {
  std::string text;
  how(document, [&](std::string_view piece) { text += piece; });
  return text;
}
}  // namespace

std::string as_text(const reader::views::Document& document) {
  return render([](const auto& d, const auto& out) { reader::views::render_text(d, {}, out); }, document);
}

std::string as_json(const reader::views::Document& document) {
  return render([](const auto& d, const auto& out) { reader::views::render_json(d, out); }, document);
}

}  // namespace traceaf::test
