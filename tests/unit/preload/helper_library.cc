// Code in another object than the test program's (see the guard's tests).
#include <stdlib.h>

extern "C" void helper_allocates(int) { free(malloc(6)); }
