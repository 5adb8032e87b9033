// Opening and describing an ELF file through libelf. Every size and offset in the file is taken as hostile.
#include "reader/symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace traceaf::reader::symbols {
namespace {

// Calls `visit(section, header, name)` for each section.
template <typename Visit>
void for_sections(Elf* elf, Visit visit) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr) visit(section, header, std::string_view(name));
  }
}

std::string_view bytes_of(Elf_Scn* section) {
  const Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return {};
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

// The part behind "." or ".z" of a debug section's name, without ".dwo".
std::string_view debug_name(std::string_view name) {
  if (name.ends_with(".dwo")) name.remove_suffix(4);
  if (name.starts_with(".zdebug_")) return name.substr(2);
  return name.starts_with(".debug_") ? name.substr(1) : std::string_view();
}

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}

}  // namespace

void CodeRanges::add(uint64_t lo, uint64_t hi) {
  if (lo < hi) ranges_.push_back({lo, hi});
}

void CodeRanges::finish() {
  std::sort(ranges_.begin(), ranges_.end(), [](const CodeRange& a, const CodeRange& b) { return a.lo < b.lo; });
}

bool CodeRanges::holds(uint64_t address) const { return ranges_.empty() || end_of(address) != 0; }

uint64_t CodeRanges::end_of(uint64_t address) const {
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](uint64_t a, const CodeRange& r) { return a < r.lo; });
  if (it == ranges_.begin()) return 0;
  --it;
  return address < it->hi ? it->hi : 0;
}

std::unique_ptr<ElfFile> ElfFile::open(const std::string& path, std::string& why) {
  elf_version(EV_CURRENT);
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->path_ = path;
  file->fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd_ < 0) {
    why = std::strerror(errno);
    return nullptr;
  }
  struct stat st;
  if (fstat(file->fd_, &st) != 0 || !S_ISREG(st.st_mode)) {
    why = "not a regular file";
    return nullptr;
  }
  file->elf_ = elf_begin(file->fd_, ELF_C_READ_MMAP, nullptr);
  if (file->elf_ == nullptr || elf_kind(file->elf_) != ELF_K_ELF) {
    why = "not an ELF file";
    return nullptr;
  }
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_elf_gnu_build_id(file->elf_, &id);
  for (ssize_t i = 0; i < id_bytes && i < 64; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(id)[i];
    file->build_id_ += "0123456789abcdef"[byte >> 4];
    file->build_id_ += "0123456789abcdef"[byte & 15];
  }
  file->read_sections();
  file->read_segments();
  return file;
}

ElfFile::~ElfFile() {
  if (elf_ != nullptr) elf_end(elf_);
  if (fd_ >= 0) close(fd_);
}

void ElfFile::read_sections() {
  for_sections(elf_, [this](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    if ((header.sh_flags & SHF_EXECINSTR) != 0 && (header.sh_flags & SHF_ALLOC) != 0 && header.sh_addr != 0 &&
        header.sh_size < std::numeric_limits<uint64_t>::max() - header.sh_addr) {
      code_.add(header.sh_addr, header.sh_addr + header.sh_size);
      if (name == ".text") text_ = header.sh_addr;
    }
    if (header.sh_type == SHT_NOBITS || header.sh_size == 0) return;
    if (debug_name(name) == "debug_info") has_debug_info_ = true;
    if (header.sh_type == SHT_SYMTAB) has_symtab_ = true;
    if (name == ".gnu_debugdata") has_mini_debug_info_ = true;
    if (name == ".gnu_debuglink") {
      const std::string_view data = bytes_of(section);
      const size_t end = data.find('\0');
      if (end == 0 || end == std::string_view::npos) return;
      const size_t crc = (end + 4) & ~size_t{3};
      if (crc + 4 > data.size()) return;
      DebugLink link{std::string(data.substr(0, end)), 0};
      std::memcpy(&link.crc, data.data() + crc, 4);
      if (link.name.find('/') == std::string::npos) debug_link_ = std::move(link);
    }
  });
  code_.finish();
}

void ElfFile::read_segments() {
  size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0) return;
  const bool no_sections = !code_.end_of(text_.value_or(0)) && !text_;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type != PT_LOAD) continue;
    if (!first_load_) first_load_ = header.p_vaddr & ~uint64_t{4095};
    if (no_sections && (header.p_flags & PF_X) != 0 &&
        header.p_memsz < std::numeric_limits<uint64_t>::max() - header.p_vaddr) {
      code_.add(header.p_vaddr, header.p_vaddr + header.p_memsz);
    }
  }
  code_.finish();
}

uint64_t ElfFile::shift_of(const ElfFile& other) const {
  if (text_ && other.text_) return *other.text_ - *text_;
  if (first_load_ && other.first_load_) return *other.first_load_ - *first_load_;
  return 0;
}

std::optional<uint32_t> ElfFile::crc() const {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  std::vector<unsigned char> buffer(1 << 18);
  uint32_t crc = ~0u;
  off_t at = 0;
  for (;;) {
    const ssize_t got = pread(fd_, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return ~crc;
    for (ssize_t i = 0; i < got; ++i) crc = kTable[(crc ^ buffer[static_cast<size_t>(i)]) & 255] ^ (crc >> 8);
    at += got;
  }
}

std::string_view debug_section(Elf* elf, std::string_view name, bool split) {
  std::string_view found;
  for_sections(elf, [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view full) {
    if (!found.empty() || header.sh_type == SHT_NOBITS || (header.sh_flags & SHF_COMPRESSED) != 0) return;
    if (full.ends_with(".dwo") == split && debug_name(full) == name) found = bytes_of(section);
  });
  return found;
}

std::string unreadable_sections(Elf* elf) {
  std::string why;
  for_sections(elf, [&](Elf_Scn* section, const GElf_Shdr& header, std::string_view name) {
    if (!why.empty() || (header.sh_flags & SHF_COMPRESSED) == 0 || debug_name(name).empty()) return;
    GElf_Chdr compression;
    if (gelf_getchdr(section, &compression) == nullptr) {
      why = std::string(name) + " has a damaged compression header";
    } else if (compression.ch_type == 2) {  // ELFCOMPRESS_ZSTD, not in the headers of older libelf
      why = "its debug sections are compressed with zstd";
    } else if (compression.ch_type != ELFCOMPRESS_ZLIB) {
      why = "its debug sections are compressed in an unknown way";
    } else {
      why = std::string(name) + " could not be decompressed";
    }
  });
  return why;
}

}  // namespace traceaf::reader::symbols
