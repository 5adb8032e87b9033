// Hazard: a switch by setenv, putenv, unsetenv or clearenv that takes force late, or not at all.
// Right: of 100 rounds exactly the blocks born between on and off are in the trace. setenv and putenv themselves may
// allocate a little (environment strings) while recording is on.
#include "expect.h"

enum { kRounds = 100, kOn = 10, kOff = 1000 };

static void allocate(int blocks) {
  for (int i = 0; i < blocks; ++i) free(malloc(48));
}

int main(void) {
  const char* given = getenv("TRACEALLOCFREE");
  char saved[4096], off[4200], put_on[4200];
  char expect_file[4096];
  snprintf(saved, sizeof saved, "%s", given == NULL ? "0" : given);
  snprintf(off, sizeof off, "%s,0", saved);
  snprintf(put_on, sizeof put_on, "TRACEALLOCFREE=%s", saved);
  snprintf(expect_file, sizeof expect_file, "%s", getenv("E2E_EXPECT_FILE") == NULL ? "" : getenv("E2E_EXPECT_FILE"));
  for (int i = 0; i < kRounds; ++i) {
    allocate(kOn);
    switch (i % 4) {
      case 0:
        MUST(setenv("TRACEALLOCFREE", off, 1) == 0);
        break;
      case 1:
        MUST(unsetenv("TRACEALLOCFREE") == 0);
        break;
      case 2:
        MUST(putenv("TRACEALLOCFREE=0") == 0);
        break;
      case 3:
        MUST(clearenv() == 0);
        break;
    }
    allocate(kOff);
    if (i % 2 == 0) {
      MUST(setenv("TRACEALLOCFREE", saved, 1) == 0);
    } else {
      MUST(putenv(put_on) == 0);
    }
  }
  if (expect_file[0] != 0) MUST(setenv("E2E_EXPECT_FILE", expect_file, 1) == 0);
  expect("allocations", ">=", kRounds * kOn);
  expect("allocations", "<=", kRounds * kOn + 2 * kRounds);
  say("done\n");
  return 0;
}
