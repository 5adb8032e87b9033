// A program that no preload reaches: static, at a random address. Allocates, says so, and ends with status 7.
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  for (int i = 1; i < 1000; ++i) {
    char* volatile p = malloc((size_t)i);
    p[0] = 1;
    free(p);
  }
  static const char text[] = "static child\n";
  return write(1, text, sizeof text - 1) == sizeof text - 1 ? 7 : 1;
}
