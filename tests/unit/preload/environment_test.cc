// Changes of TRACEALLOCFREE reach the recorder with the value that getenv would give; others do not.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "notes.h"

namespace {

using fake::What;

std::string options(const std::vector<fake::Note>& notes) {
  std::vector<fake::Note> found;
  for (const auto& n : notes) {
    if (n.what == What::kOption) found.push_back(n);
  }
  return fake::text(found);
}

TEST(Environment, SetPutAndUnsetAreTold) {
  static char text[] = "TRACEALLOCFREE=standby";
  static char name[] = "TRACEALLOCFREE";
  const auto notes = fake::record([&] {
    setenv("TRACEALLOCFREE", "1,depth=5", 1);
    setenv("TRACEALLOCFREE", "0", 0);  // does not overwrite
    putenv(text);
    putenv(name);  // removes
    setenv("TRACEALLOCFREE", "1", 0);
    unsetenv("TRACEALLOCFREE");
  });
  EXPECT_EQ(options(notes), "option 1,depth=5; option 1,depth=5; option standby; option unset; option 1; option unset");
}

TEST(Environment, OtherNamesAndFailuresAreNot) {
  static char other[] = "TRACEALLOCFREEX=1";
  int results[2] = {};
  const auto notes = fake::record([&] {
    setenv("TRACEALLOCFRE", "1", 1);
    setenv("TRACEALLOCFREE2", "1", 1);
    putenv(other);
    unsetenv("TRACEALLOCFREE2");
    results[0] = setenv("", "1", 1);
    results[1] = setenv("TRACEALLOCFREE=", "1", 1);
  });
  EXPECT_EQ(options(notes), "");
  EXPECT_EQ(results[0], -1);
  EXPECT_EQ(results[1], -1);
}

TEST(Environment, ItWorksWhileOffAndClearenvUnsets) {
  fake::note();
  fake::set_gate(traceaf::emitter::kGateOff);
  char* path = strdup(getenv("PATH") != nullptr ? getenv("PATH") : "");
  setenv("TRACEALLOCFREE", "1", 1);
  clearenv();
  const fake::Note* notes = nullptr;
  const size_t n = fake::notes_end(&notes);
  EXPECT_EQ(options({notes, notes + n}), "option 1; option unset");
  setenv("PATH", path, 1);
  free(path);
}

}  // namespace
