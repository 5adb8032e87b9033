// What kind of program a command is (see target.h).
#include "reader/launcher/target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace traceaf::launcher {
namespace {

constexpr int kMostInterpreters = 5;  // the kernel follows as many

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string search(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : std::string();
  const char* path = getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  for (bool more = true; more;) {
    const size_t colon = rest.find(':');
    more = colon != std::string_view::npos;
    const std::string folder(rest.substr(0, colon));
    if (more) rest.remove_prefix(colon + 1);
    std::string full = folder.empty() ? name : folder + "/" + name;
    if (is_program(full)) return full;
  }
  return {};
}

class Fd {
 public:
  explicit Fd(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};

// The loader ignores LD_PRELOAD for a program that gains privileges by being run (AT_SECURE).
std::string privilege(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != geteuid()) return "is setuid";
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != getegid()) return "is setgid";
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) return "has file capabilities";
  return {};
}

struct Dynamic {
  std::vector<std::string> needed;
  std::string soname;
  bool asan_init = false;
};

// DT_NEEDED, DT_SONAME, and whether a dynamic symbol shows a sanitizer linked into the program.
Dynamic read_dynamic(Elf* elf) {
  Dynamic found;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header{};
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0) continue;
    if (header.sh_type != SHT_DYNAMIC && header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    const size_t entries = data == nullptr ? 0 : data->d_size / header.sh_entsize;
    for (size_t i = 0; i < entries; ++i) {
      if (header.sh_type == SHT_DYNAMIC) {
        GElf_Dyn entry{};
        if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL) break;
        const char* text = nullptr;
        if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME)
          text = elf_strptr(elf, header.sh_link, entry.d_un.d_val);
        if (text == nullptr) continue;
        if (entry.d_tag == DT_NEEDED) {
          found.needed.emplace_back(text);
        } else {
          found.soname = text;
        }
      } else {
        GElf_Sym symbol{};
        if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
        const char* text = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (text == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
        for (const char* marker : {"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"}) {
          found.asan_init = found.asan_init || std::string_view(text) == marker;
        }
      }
    }
  }
  return found;
}

// PT_INTERP, empty when there is none.
std::string interpreter(Elf* elf, int fd) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return {};
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header{};
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_INTERP) continue;
    std::array<char, 4096> path{};
    const size_t size = header.p_filesz < path.size() - 1 ? header.p_filesz : path.size() - 1;
    if (pread(fd, path.data(), size, static_cast<off_t>(header.p_offset)) < 0) return {};
    return path.data();
  }
  return {};
}

std::string examine_elf(const std::string& path, int fd) {
  if (elf_version(EV_CURRENT) == EV_NONE) return {};
  const std::unique_ptr<Elf, ElfEnd> elf(elf_begin(fd, ELF_C_READ, nullptr));
  GElf_Ehdr header{};
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr) return {};
  if (gelf_getclass(elf.get()) == ELFCLASS32) return "is a 32-bit program and libtraceaf.so is a 64-bit library";
  if (header.e_machine != EM_X86_64) return "is built for another machine than x86-64";
  if (const std::string gains = privilege(path); !gains.empty()) {
    return gains + ", for which the loader ignores preloaded libraries";
  }
  const Dynamic dynamic = read_dynamic(elf.get());
  const std::string loader = interpreter(elf.get(), fd);
  if (loader.empty()) {
    if (dynamic.soname.rfind("ld-linux", 0) == 0) return {};  // the loader as a command preloads as well
    return "is statically linked, so no library can be preloaded into it";
  }
  if (loader.find("ld-musl") != std::string::npos) return "is built for musl and libtraceaf.so for glibc";
  if (loader.find("ld-linux-x86-64.so") == std::string::npos) {
    return fmt::format("is started by {}, which is not glibc's loader", loader);
  }
  for (const std::string& library : dynamic.needed) {
    for (const char* sanitizer : {"libasan.so", "libtsan.so", "libmsan.so", "liblsan.so", "libhwasan.so",
                                  "libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.msan", "libclang_rt.hwasan"}) {
      if (library.rfind(sanitizer, 0) == 0)
        return fmt::format("is built with a sanitizer ({}), which replaces malloc itself", library);
    }
  }
  if (dynamic.asan_init) return "is built with a sanitizer, which replaces malloc itself";
  return {};
}

}  // namespace

Target inspect_target(const std::string& name) {
  Target target;
  std::string path = search(name);
  for (int i = 0; i < kMostInterpreters && !path.empty(); ++i) {
    target.path = path;
    const Fd fd(path);
    std::array<char, 256> head{};
    const ssize_t size = fd.get() < 0 ? -1 : pread(fd.get(), head.data(), head.size() - 1, 0);
    if (size < 4) return target;  // unreadable, or a script without #!, which /bin/sh runs
    if (head[0] != '#' || head[1] != '!') {
      if (std::string_view(head.data(), 4) ==
          "\x7f"
          "ELF")
        target.obstacle = examine_elf(path, fd.get());
      return target;
    }
    std::string_view line(head.data() + 2, static_cast<size_t>(size) - 2);
    line = line.substr(0, line.find('\n'));
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    path = std::string(line.substr(0, line.find_first_of(" \t\r")));
  }
  return target;
}

}  // namespace traceaf::launcher
