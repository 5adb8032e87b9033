"""What scripts/bench runs: the shapes of `pairs`, and programs of the system with work that is the same on each machine."""

import shutil

# COUNT DEPTH THREADS
SHAPES = ((2_000_000, 5, 1), (2_000_000, 20, 1), (1_000_000, 60, 1), (2_000_000, 20, 2), (2_000_000, 20, 4))

SQL = """\
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i+1 from n where i<300000)
  insert into t select i, hex(randomblob(12)), i*0.5 from n;
create index tb on t(b);
select count(*), sum(length(b)), max(b) from (select b, group_concat(c) g from t group by substr(b,1,3));
"""
SOURCE = """\
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <unordered_map>
int main() {
  std::map<std::string, std::vector<int>> m;
  std::unordered_map<std::string, std::function<int(int)>> f;
  std::vector<std::string> v{"x", "y"};
  std::sort(v.begin(), v.end());
  std::cout << std::regex_match("aab", std::regex("a+b")) << m.size() << f.size();
}
"""
PERL = """\
my %h; for my $i (1..400000) { $h{"k$i"} = [$i, "v$i"]; }
my $s = 0; for my $k (sort keys %h) { $s += $h{$k}[0]; } print $s
"""


def programs(folder):
    """Name and command of each program that this machine has; their inputs are written into `folder`."""
    (folder / "q.sql").write_text(SQL)
    (folder / "big.cc").write_text(SOURCE)
    (folder / "sums.pl").write_text(PERL)
    commands = {
        "sqlite3": ["sqlite3", ":memory:", f".read {folder}/q.sql"],
        # One process: the compiler proper is not started as another.
        "clang++": ["clang++", "-fintegrated-cc1", "-O1", "-g", "-c", f"{folder}/big.cc", "-o", f"{folder}/big.o"],
        "perl": ["perl", f"{folder}/sums.pl"],
    }
    return {name: command for name, command in commands.items() if shutil.which(command[0])}
