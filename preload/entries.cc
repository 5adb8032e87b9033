// What the dynamic linker finds under the name of a gated function: while recording is off the call goes on to the next
// definition without a frame, a stack slot or a changed argument register; otherwise to the wrapper, which sees the
// caller's own return address. Written as assembly so that no build type changes it.
#include "preload/next.h"

extern "C" {
#define TRACEAF_ENTRY_gated(id, symbol)                   \
  asm(".text\n"                                           \
      ".p2align 4\n"                                      \
      ".globl " #symbol                                   \
      "\n"                                                \
      ".type " #symbol                                    \
      ", @function\n"                                     \
      ".hidden taf_on_" #id ", taf_off_" #id "\n" #symbol \
      ":\n"                                               \
      ".cfi_startproc\n"                                  \
      "  movq _ZN7traceaf7emitter6g_gateE(%rip), %r11\n"  \
      "  cmpl $0, (%r11)\n"                               \
      "  jne taf_on_" #id                                 \
      "\n"                                                \
      "  jmp *taf_off_" #id                               \
      "(%rip)\n"                                          \
      ".cfi_endproc\n"                                    \
      ".size " #symbol ", . - " #symbol "\n");
#define TRACEAF_ENTRY_always(id, symbol)
#define TRACEAF_FUNCTION(id, symbol, group, entry, presence, type, doc) TRACEAF_ENTRY_##entry(id, symbol)
#include "preload/functions.inc"
#undef TRACEAF_FUNCTION

asm(".hidden _ZN7traceaf7emitter6g_gateE");
}
