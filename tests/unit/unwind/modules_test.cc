// The table of ELF objects: ids, paths, build ids, many threads at once, a missing /proc.
#include "emitter/modules.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <libelf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emitter/unwind/module_record.h"
#include "emitter/wire/rows.h"

namespace traceaf::emitter {
namespace {

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

int code_of_this_program() { return 1; }

std::string own_path() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  return {path, static_cast<size_t>(n)};
}

std::string build_id_in_file(const char* path) {
  elf_version(EV_CURRENT);
  const int fd = open(path, O_RDONLY);
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  const void* bytes = nullptr;
  const ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);
  const std::string id(static_cast<const char*>(bytes), n > 0 ? static_cast<size_t>(n) : 0);
  elf_end(elf);
  close(fd);
  return id;
}

TEST(Modules, KnowsTheProgram) {
  const uintptr_t pc = address(reinterpret_cast<void*>(&code_of_this_program));
  const uint32_t id = module_of(pc);
  ASSERT_NE(id, 0u);
  EXPECT_EQ(module_of(pc), id);
  const Module* module = module_by_id(id);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->id, id);
  EXPECT_EQ(module->flags, wire::kModuleMain);
  EXPECT_LE(module->start, pc);
  EXPECT_GT(module->end, pc);
  EXPECT_EQ(std::string(module->path, module->path_bytes), own_path());
  EXPECT_EQ(module->bias, _r_debug.r_map->l_addr);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(module->build_id), module->build_id_bytes),
            build_id_in_file(module->path));
}

TEST(Modules, KnowsLibrariesByAbsolutePathAndBuildId) {
  std::set<uint32_t> ids;
  for (const link_map* map = _r_debug.r_map; map != nullptr; map = map->l_next) {
    const uint32_t id = module_of(address(map->l_ld));
    ASSERT_NE(id, 0u) << map->l_name;
    EXPECT_TRUE(ids.insert(id).second);
    const Module& module = *module_by_id(id);
    EXPECT_EQ(module.bias, map->l_addr);
    if (module.start == getauxval(AT_SYSINFO_EHDR)) {
      EXPECT_STREQ(module.path, "[vdso]");
      EXPECT_EQ(module.flags, wire::kModuleVdso);
      continue;
    }
    EXPECT_EQ(module.path[0], '/');
    EXPECT_EQ(access(module.path, R_OK), 0) << module.path;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(module.build_id), module.build_id_bytes),
              build_id_in_file(module.path));
  }
  EXPECT_GT(ids.size(), 5u);
  EXPECT_GE(module_count(), ids.size());
}

TEST(Modules, KnowsTheVdso) {
  const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  ASSERT_NE(vdso, 0u);
  const Module* module = module_by_id(module_of(vdso));
  ASSERT_NE(module, nullptr);
  EXPECT_STREQ(module->path, "[vdso]");
  EXPECT_EQ(module->flags, wire::kModuleVdso);
  EXPECT_GT(module->build_id_bytes, 0u);
}

TEST(Modules, HasNoneForOtherAddresses) {
  int on_stack = 0;
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (const uintptr_t pc :
       {uintptr_t{0}, uintptr_t{1}, ~uintptr_t{0}, uintptr_t{1} << 63, address(&on_stack), address(mapped)}) {
    EXPECT_EQ(module_of(pc), 0u);
  }
  munmap(mapped, 4096);
  EXPECT_EQ(module_by_id(0), nullptr);
  EXPECT_EQ(module_by_id(module_count() + 1), nullptr);
  EXPECT_EQ(module_by_id(~0u), nullptr);
}

TEST(Modules, KeepIdsWhenNothingChanged) {
  const uint32_t id = module_of(address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  const uint64_t epoch = modules_epoch();
  const uint32_t count = module_count();
  for (int i = 0; i < 3; ++i) {
    modules_invalidate();
    EXPECT_EQ(module_of(address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))), id);
    modules_unload_begin();
    EXPECT_EQ(module_of(address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))), id);
    modules_unload_end();
    EXPECT_EQ(module_of(address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"))), id);
  }
  EXPECT_GT(modules_epoch(), epoch);
  EXPECT_EQ(module_count(), count);
}

TEST(Modules, ForgetWrittenRowsInAForkedChild) {
  Module* module = module_by_id(module_of(address(reinterpret_cast<void*>(&code_of_this_program))));
  module->row_generation = 7;
  modules_after_fork();
  EXPECT_EQ(module->row_generation, 0u);
  EXPECT_EQ(module_of(module->start), module->id);
}

// Copies of one library without build ids or with equal ones, at many addresses: thousands of objects, added by
// several threads at once, each with one id.
TEST(Modules, ManyThreadsAddManyObjects) {
  char folder[] = "/tmp/traceaf-modules-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  constexpr int kLibraries = 300;
  std::string content;
  {
    const int fd = open(TRACEAF_PLUGIN_SMALL, O_RDONLY);
    char chunk[65536];
    for (ssize_t n; (n = read(fd, chunk, sizeof(chunk))) > 0;) content.append(chunk, static_cast<size_t>(n));
    close(fd);
  }
  std::vector<void*> handles;
  std::vector<uintptr_t> code;
  for (int i = 0; i < kLibraries; ++i) {
    const std::string path = std::string(folder) + "/lib" + std::to_string(i) + ".so";
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0755);
    ASSERT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(fd);
    handles.push_back(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
    ASSERT_NE(handles.back(), nullptr) << dlerror();
    code.push_back(address(dlsym(handles.back(), "plugin_call")));
    unlink(path.c_str());
  }
  rmdir(folder);
  constexpr size_t kThreads = 4;
  std::vector<std::vector<uint32_t>> seen(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (const uintptr_t pc : code) seen[t].push_back(module_of(pc));
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t t = 1; t < kThreads; ++t) EXPECT_EQ(seen[t], seen[0]);
  const std::set<uint32_t> ids(seen[0].begin(), seen[0].end());
  EXPECT_EQ(ids.size(), size_t{kLibraries});
  EXPECT_EQ(ids.count(0), 0u);
  for (int i = 0; i < kLibraries; ++i) {
    const Module* module = module_by_id(seen[0][static_cast<size_t>(i)]);
    EXPECT_EQ(module->path, std::string(folder) + "/lib" + std::to_string(i) + ".so");
    EXPECT_TRUE(code[static_cast<size_t>(i)] >= module->start && code[static_cast<size_t>(i)] < module->end);
  }
  modules_unload_begin();
  for (void* handle : handles) dlclose(handle);
  modules_unload_end();
  for (const uint32_t id : ids) EXPECT_NE(module_by_id(id)->flags & wire::kModuleUnloaded, 0u);
  for (const uintptr_t pc : code) EXPECT_EQ(module_of(pc), 0u);
}

// With and without /proc the same path is found for the program; for others the loader's name has to do.
TEST(ModulePath, WorksWithoutProc) {
  const uintptr_t start = module_by_id(module_of(address(reinterpret_cast<void*>(&code_of_this_program))))->start;
  char path[4096];
  const auto find = [&](const char* proc, const char* name) {
    const size_t n = unwind::find_module_path(proc, start, name, path, sizeof(path));
    return std::string(path, n);
  };
  EXPECT_EQ(find("/proc/self", ""), own_path());
  EXPECT_EQ(find("/nonexistent", "/lib/libx.so"), "/lib/libx.so");
  EXPECT_EQ(find("/proc/self", "./relative.so"), own_path());  // what is mapped there counts
  EXPECT_EQ(find("/nonexistent", "./no-such-file.so"), "./no-such-file.so");
  const std::string without = find("/nonexistent", "");
  EXPECT_EQ(without[0], '/');
  char resolved[PATH_MAX];
  ASSERT_NE(realpath(without.c_str(), resolved), nullptr);
  EXPECT_EQ(std::string(resolved), own_path());
  char small[4];
  EXPECT_EQ(unwind::find_module_path("/proc/self", start, "", small, sizeof(small)), 0u);
  EXPECT_EQ(unwind::find_module_path("/nonexistent", start, "/lib/libx.so", small, sizeof(small)), 0u);
}

TEST(ModulePath, KnowsAFileThatWasRemoved) {
  char folder[] = "/tmp/traceaf-path-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/a file, removed.so";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* at = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  unlink(path.c_str());
  rmdir(folder);
  char found[4096];
  const size_t n = unwind::find_module_path("/proc/self", address(at), "x.so", found, sizeof(found));
  EXPECT_EQ(std::string(found, n), path);
  munmap(at, 4096);
}

TEST(ElfImage, RefusesWhatIsNoElf) {
  alignas(4096) static char page[8192];
  unwind::ElfImage image;
  EXPECT_FALSE(unwind::read_elf_image(address(page), 0, 0, &image));
  EXPECT_FALSE(unwind::read_elf_image(0x10, 0, 0, &image));
  std::memcpy(page, "\177ELF", 4);
  EXPECT_FALSE(unwind::read_elf_image(address(page), 0, 0, &image));
  EXPECT_EQ(image.segment_count, 0u);
}

TEST(ElfImage, TellsObjectsWithoutBuildIdByTheirTables) {
  const uint32_t libc = module_of(address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
  const unwind::ModuleRecord& record = *unwind::module_record(libc);
  // A copy whose notes are hidden.
  auto* copy = static_cast<char*>(mmap(nullptr, record.module.end - record.module.start, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (uint32_t i = 0; i < record.image.segment_count; ++i) {
    const unwind::Segment& s = record.image.segments[i];
    if (s.readable) std::memcpy(copy + (s.lo - record.module.start), reinterpret_cast<const void*>(s.lo), s.hi - s.lo);
  }
  auto* header = reinterpret_cast<ElfW(Ehdr)*>(copy);
  auto* headers = reinterpret_cast<ElfW(Phdr)*>(copy + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i) {
    if (headers[i].p_type == PT_NOTE) headers[i].p_type = PT_NULL;
  }
  const uintptr_t bias = record.module.bias + address(copy) - record.module.start;
  const uintptr_t tables = record.eh_frame_hdr - record.module.start + address(copy);
  unwind::ElfImage first, same, other;
  ASSERT_TRUE(unwind::read_elf_image(address(copy), bias, tables, &first));
  EXPECT_EQ(first.build_id_bytes, 0u);
  EXPECT_NE(first.fingerprint, 0u);
  ASSERT_TRUE(unwind::read_elf_image(address(copy), bias, tables, &same));
  EXPECT_EQ(same.fingerprint, first.fingerprint);
  reinterpret_cast<char*>(tables)[100] ^= 1;
  ASSERT_TRUE(unwind::read_elf_image(address(copy), bias, tables, &other));
  EXPECT_NE(other.fingerprint, first.fingerprint);
  munmap(copy, record.module.end - record.module.start);
}

}  // namespace
}  // namespace traceaf::emitter
