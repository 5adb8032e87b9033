// Looks a function up in the dynamic symbol table of a loaded object: no lock, no allocation, no dlerror state, and
// usable before libc is set up. That is why dlsym is not used: it takes the loader's lock, allocates when it fails, and
// does not see libraries loaded RTLD_LOCAL.
#pragma once

#include <link.h>

namespace traceaf::preload {

// Address of the default version of `name` defined by the object at load bias `bias` with dynamic section `dynamic`,
// an indirect function resolved; nullptr when the object does not define it.
void* find_symbol(ElfW(Addr) bias, const ElfW(Dyn) * dynamic, const char* name);
inline void* find_symbol(const link_map* object, const char* name) {
  return find_symbol(object->l_addr, object->l_ld, name);
}

}  // namespace traceaf::preload
