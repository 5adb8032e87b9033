// A program without a dynamic loader, which the launcher has to recognise.
#include <cstdlib>

int main() { return getenv("TRACEALLOCFREE") == nullptr && getenv("LD_PRELOAD") == nullptr ? 42 : 1; }
