// Hazard: exec of the same program in the same pid overwrites the trace of the image before, or loses its end (O13, O14
// of the bug log).
// Right: one whole trace for each image, each with its own births.
// Arguments: images still to come, and the number of this one (from 0).
#include "expect.h"

int main(int argc, char** argv) {
  MUST(argc == 3);
  const int left = atoi(argv[1]), image = atoi(argv[2]);
  for (int i = 0; i < 100 * (image + 1); ++i) MUST(malloc(64) != NULL);
  expect_image(image, "allocations", "==", 100 * (image + 1));
  expect_image(image, "live_bytes", "==", 6400 * (image + 1));
  if (left == 0) {
    say("done\n");
    return 0;
  }
  char next_left[16], next_image[16];
  snprintf(next_left, sizeof next_left, "%d", left - 1);
  snprintf(next_image, sizeof next_image, "%d", image + 1);
  execl(argv[0], argv[0], next_left, next_image, (char*)NULL);
  return 99;
}
