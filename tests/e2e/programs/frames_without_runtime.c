// Hazard: unwind tables registered while no C++ runtime is loaded: in the plain run there is no such function, in the
// recorded one there is ours. A runtime that is loaded later does not know the tables, and libgcc's aborts when it is
// told to forget them.
// Right: as plain; tables that the runtime does know are registered and taken back as ever.
#include <dlfcn.h>

#include "expect.h"

typedef void register_function(const void*, void*);
typedef void* deregister_function(const void*);

static char sections[2][64];  // empty ones: the terminator is all there is
static char objects[2][64];   // what libgcc keeps of a section

int main(void) {
  register_function* enter = (register_function*)dlsym(RTLD_DEFAULT, "__register_frame_info");
  if (enter != NULL) enter(sections[0], objects[0]);
  void* runtime = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL);
  MUST(runtime != NULL);
  register_function* enter_now = (register_function*)dlsym(RTLD_DEFAULT, "__register_frame_info");
  deregister_function* leave = (deregister_function*)dlsym(RTLD_DEFAULT, "__deregister_frame_info");
  MUST(enter_now != NULL && leave != NULL);
  // Not empty, so that libgcc keeps it: the length of a common entry of nothing but its id.
  sections[1][0] = 4;
  enter_now(sections[1], objects[1]);
  if (enter != NULL) MUST(leave(sections[0]) == NULL);
  MUST(leave(sections[1]) == objects[1]);
  say("done\n");
  return 0;
}
