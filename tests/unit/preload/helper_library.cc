// Code in another object than the test program's (see the guard's tests).
#include <stdlib.h>

#include <new>

extern "C" void helper_allocates(int) { free(malloc(6)); }
// Both reach malloc behind a wrapper.
extern "C" void helper_news(int) { ::operator delete(::operator new(6)); }
extern "C" void helper_sets_variable(int) { setenv("TRACEAF_TEST_OF_GUARD", "long enough to be allocated", 1); }
