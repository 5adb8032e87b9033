// View: what each thread allocated and freed.
#include <fmt/format.h>

#include <algorithm>

#include "reader/views/units.h"
#include "reader/views/views.h"
#include "reader/views/wording.h"

namespace traceaf::reader::views {

Document threads_view(const Profile& profile, const ViewOptions& options) {
  std::vector<const Thread*> threads;
  uint64_t of_program = 0;
  for (const Thread& thread : profile.threads) {
    threads.push_back(&thread);
    of_program += (thread.flags & wire::kThreadFlusher) == 0 ? 1 : 0;
  }
  const auto value = [&](const Thread& thread) {
    switch (options.metric) {
      case Metric::kCount:
        return thread.allocated.count;
      case Metric::kTemporary:
        return thread.temporary.count;
      default:
        return thread.allocated.bytes;
    }
  };
  std::sort(threads.begin(), threads.end(), [&](const Thread* a, const Thread* b) {
    return value(*a) != value(*b) ? value(*a) > value(*b) : a->m < b->m;
  });

  Document document;
  document.parts.emplace_back(Fields{
      "", "", {{"command", "", text(command_line(profile.process))}, {"threads_total", "", count(threads.size())}}});
  Table table;
  table.key = "threads";
  table.title = fmt::format("{} allocated {} in {}", count_of(of_program, "thread"),
                            format_bytes(profile.allocated.bytes), count_of(profile.allocated.count, "block"));
  table.nothing = "nothing";
  table.columns = {{"m", "m"},
                   {"tid", "tid"},
                   {"name", "name"},
                   {"bytes", "allocated"},
                   {"share_percent", "share"},
                   {"allocations", "blocks"},
                   {"frees", "frees"},
                   {"freed_bytes", "freed"},
                   {"temporary", "temporary"},
                   {"events", "events"},
                   {"birth_ns", "born at"},
                   {"stack_bytes", "stack"},
                   {"main", ""},
                   {"ended", ""},
                   {"recorder", ""},
                   {"stack_address", ""}};
  const size_t shown = options.limit == 0 ? threads.size() : std::min(options.limit, threads.size());
  for (size_t i = 0; i < shown; ++i) {
    const Thread& t = *threads[i];
    table.rows.push_back(
        {{id(t.m), id(t.tid), text((t.flags & wire::kThreadFlusher) != 0 && t.name.empty() ? "[recorder]" : t.name),
          bytes(t.allocated.bytes), share(t.allocated.bytes, profile.allocated.bytes), count(t.allocated.count),
          count(t.freed.count), bytes(t.freed.bytes), count(t.temporary.count), count(t.events), ns(t.birth_ns),
          t.stack_bytes == 0 ? none() : bytes(t.stack_bytes), flag((t.flags & wire::kThreadMain) != 0),
          flag((t.flags & wire::kThreadEnded) != 0), flag((t.flags & wire::kThreadFlusher) != 0), address(t.stack_lo)},
         {}});
  }
  table.more = left_out(shown, threads.size());
  document.parts.emplace_back(std::move(table));
  return document;
}

}  // namespace traceaf::reader::views
