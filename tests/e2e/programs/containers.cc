// Hazard: none of its own; one thread of ordinary C++ (strings, maps, vectors that grow) whose totals memcheck counts
// too. Right: the totals of independent_counts.py.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "expect.h"

int main() {
  std::map<std::string, std::vector<int>> table;
  for (int i = 0; i < 5000; ++i) {
    auto& row = table["a key that is too long for the small string " + std::to_string(i % 700)];
    for (int k = 0; k < i % 50; ++k) row.push_back(k);
    if (i % 7 == 0) table.erase(table.begin());
  }
  auto leaked = std::make_unique<std::string>(1000, 'x');
  auto shared = std::make_shared<std::vector<std::string>>(100, *leaked);
  static_cast<void>(leaked.release());
  say("done\n");
  return table.size() == 0;
}
