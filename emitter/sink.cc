// The output file (see sink.h).
#define ZSTD_STATIC_LINKING_ONLY  // static workspaces: zstd must not allocate inside the program
#include "emitter/sink.h"

#include <zstd.h>
#include <cerrno>
#include <cstring>

#include "emitter/own_file.h"
#include "emitter/region.h"
#include "emitter/wire/events.h"

namespace traceaf::emitter {
namespace {

// Chosen by measurement on events (docs/performance.md). Fields of events have two to four bytes, so matches of four
// pay; a table of 2^12 places stays in the first cache; windows over 2^18 gain nothing.
constexpr ZSTD_compressionParameters kParameters = {.windowLog = 18,
                                                    .chainLog = 12,
                                                    .hashLog = 12,
                                                    .searchLog = 1,
                                                    .minMatch = 4,
                                                    .targetLength = 0,
                                                    .strategy = ZSTD_fast};
constexpr size_t kStage = size_t{256} << 10;  // bytes collected before a write

constinit OwnFile g_out;
constinit bool g_compress = true;
constinit bool g_hurry = false;
constinit unsigned g_image = 0;
constinit int g_error = 0;
constinit ZSTD_CCtx* g_zstd = nullptr;
constinit void* g_workspace = nullptr;
constinit size_t g_workspace_bytes = 0;
constinit uint8_t* g_stage = nullptr;
constinit size_t g_staged = 0;

void write_stage() {
  if (g_error == 0 && g_staged > 0) g_error = g_out.append(g_stage, g_staged);
  g_staged = 0;
}

void stage(const uint8_t* from, size_t bytes) {
  while (bytes > 0 && g_error == 0) {
    const size_t part = bytes < kStage - g_staged ? bytes : kStage - g_staged;
    memcpy(g_stage + g_staged, from, part);
    g_staged += part;
    from += part;
    bytes -= part;
    if (g_staged == kStage) write_stage();
  }
}

void compress(const void* from, size_t bytes, ZSTD_EndDirective directive) {
  ZSTD_inBuffer in{from, bytes, 0};
  for (;;) {
    ZSTD_outBuffer out{g_stage, kStage, g_staged};
    const size_t left = ZSTD_compressStream2(g_zstd, &out, &in, directive);
    g_staged = out.pos;
    if (ZSTD_isError(left) != 0) {
      g_error = -EIO;
      return;
    }
    const bool done = directive == ZSTD_e_continue ? in.pos == in.size : left == 0;
    if (g_staged == kStage || (!done && g_staged > kStage / 2)) write_stage();
    if (done || g_error != 0) return;
  }
}

// Matches of seven bytes only, and literals as they are: a fifth of the time for twice the bytes.
void set_speed(bool hurry) {
  constexpr int kLongMatches = 7, kSkip = 20;
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_minMatch, hurry ? kLongMatches : static_cast<int>(kParameters.minMatch));
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_targetLength, hurry ? kSkip : static_cast<int>(kParameters.targetLength));
  g_hurry = hurry;
}

// Memory for the stage and for zstd; without it the trace is written plain.
int prepare_memory() {
  if (g_stage == nullptr) g_stage = static_cast<uint8_t*>(own_map(kStage));
  if (g_stage == nullptr) return -ENOMEM;
  if (!g_compress || g_zstd != nullptr) return 0;
  g_workspace_bytes = ZSTD_estimateCStreamSize_usingCParams(kParameters);
  g_workspace = own_map(g_workspace_bytes);
  g_zstd = g_workspace == nullptr ? nullptr : ZSTD_initStaticCCtx(g_workspace, g_workspace_bytes);
  if (g_zstd == nullptr) {
    g_compress = false;
    return 0;
  }
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_strategy, kParameters.strategy);
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_windowLog, static_cast<int>(kParameters.windowLog));
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_hashLog, static_cast<int>(kParameters.hashLog));
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_chainLog, static_cast<int>(kParameters.chainLog));
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_searchLog, static_cast<int>(kParameters.searchLog));
  set_speed(false);
  ZSTD_CCtx_setParameter(g_zstd, ZSTD_c_checksumFlag, 1);
  return 0;
}

}  // namespace

int sink_open(const char* pattern, uint64_t wall_ns, bool compress_output) {
  g_compress = compress_output;
  g_error = 0;
  g_staged = 0;
  int r = prepare_memory();
  if (r != 0) return r;
  char path[OwnFile::kPathRoom];
  r = -EEXIST;
  constexpr unsigned kAttempts = 100000;
  for (g_image = 0; g_image < kAttempts && r == -EEXIST; ++g_image) {
    if (!expand_name(pattern, g_image, wall_ns, path, sizeof(path) - 16)) return -ENAMETOOLONG;
    r = g_out.create(path);
  }
  if (r != 0) return r;
  --g_image;
  sink_begin_generation();
  sink_bytes(wire::kHeader, sizeof(wire::kHeader));
  r = sink_end_generation();
  if (r != 0) {
    g_out.unlink();
    g_out.forget();
  }
  return r;
}

bool sink_is_open() { return g_out.path()[0] != 0; }
const char* sink_path() { return g_out.path(); }
unsigned sink_image() { return g_image; }

void sink_begin_generation() {
  if (g_compress && g_zstd != nullptr) ZSTD_CCtx_reset(g_zstd, ZSTD_reset_session_only);
}

bool sink_hurries() { return g_hurry; }

void sink_hurry(bool hurry) {
  if (!g_compress || g_zstd == nullptr || hurry == g_hurry || g_error != 0) return;
  // Parameters hold for a whole frame.
  compress(nullptr, 0, ZSTD_e_end);
  ZSTD_CCtx_reset(g_zstd, ZSTD_reset_session_only);
  set_speed(hurry);
}

void sink_bytes(const void* from, size_t bytes) {
  if (g_error != 0) return;
  if (g_compress) {
    compress(from, bytes, ZSTD_e_continue);
  } else {
    stage(static_cast<const uint8_t*>(from), bytes);
  }
}

int sink_flush() {
  if (g_error == 0 && g_compress) compress(nullptr, 0, ZSTD_e_flush);
  write_stage();
  return g_error;
}

int sink_end_generation() {
  if (g_error == 0 && g_compress) compress(nullptr, 0, ZSTD_e_end);
  write_stage();
  return g_error;
}

void sink_discard() {
  g_out.unlink();
  g_out.forget();
}

void sink_forget() {
  g_out.forget();
  g_staged = 0;
  g_error = 0;
}

}  // namespace traceaf::emitter
