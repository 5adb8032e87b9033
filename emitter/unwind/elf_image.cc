// Build id, segments and fingerprint of an ELF object from its program headers in memory.
#include <elf.h>

#include <cstring>

#include "emitter/unwind/memory.h"
#include "emitter/unwind/module_record.h"

namespace traceaf::emitter::unwind {

namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kFingerprintBytes = size_t{64} << 10;

uint64_t mix(uint64_t hash, Bytes bytes) {
  while (bytes.left() >= 8) hash = (hash ^ bytes.fixed<uint64_t>()) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  while (bytes.left() > 0) hash = (hash ^ bytes.u8()) * 0x9e3779b97f4a7c15u;
  return hash;
}

Bytes mapped(const ElfImage& image, uintptr_t at, uintptr_t bytes) {
  for (uint32_t i = 0; i < image.segment_count; ++i) {
    const Segment& s = image.segments[i];
    if (s.readable && at >= s.lo && at < s.hi && bytes <= s.hi - at) {
      return {reinterpret_cast<const uint8_t*>(at), reinterpret_cast<const uint8_t*>(at + bytes), true};
    }
  }
  return {nullptr, nullptr, false};
}

// Notes are padded to `align`: 4, or 8 for the notes that say so in their program header.
void find_build_id(Bytes notes, uint64_t align, ElfImage* image) {
  align = align == 8 ? 8 : 4;
  while (notes.left() >= sizeof(Elf64_Nhdr)) {
    const auto header = notes.fixed<Elf64_Nhdr>();
    const uint64_t name_room = (header.n_namesz + align - 1) / align * align;
    const uint64_t content_room = (header.n_descsz + align - 1) / align * align;
    Bytes name = notes.take(name_room < notes.left() ? name_room : notes.left());
    Bytes content = notes.take(content_room < notes.left() ? content_room : notes.left());
    if (!name.ok || !content.ok) return;
    const bool gnu = header.n_namesz == 4 && name.left() >= 4 && std::memcmp(name.at, "GNU", 4) == 0;
    if (!gnu || header.n_type != NT_GNU_BUILD_ID || header.n_descsz == 0 || header.n_descsz > content.left()) continue;
    image->build_id_bytes = header.n_descsz < sizeof(image->build_id) ? header.n_descsz : sizeof(image->build_id);
    std::memcpy(image->build_id, content.at, image->build_id_bytes);
    return;
  }
}

}  // namespace

bool read_elf_image(uintptr_t start, uintptr_t bias, uintptr_t eh_frame_hdr, ElfImage* image) {
  *image = {};
  // The first page is mapped by the first segment, which an execute-only object may not let us read.
  if (!probe_readable(start)) return false;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(start);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header->e_phentsize != sizeof(Elf64_Phdr)) return false;
  const uintptr_t table_bytes = header->e_phnum * sizeof(Elf64_Phdr);
  if (header->e_phoff > kPage || header->e_phoff + table_bytes > kPage) {
    // Beyond the page that is known to be readable: probed page by page (an object with more than 70 headers).
    if (header->e_phoff > kPage * 16 || table_bytes > kPage * 16) return false;
    for (uintptr_t at = start + kPage; at < start + header->e_phoff + table_bytes; at += kPage) {
      if (!probe_readable(at)) return false;
    }
  }
  const auto* const first = reinterpret_cast<const Elf64_Phdr*>(start + header->e_phoff);
  const auto* const last = first + header->e_phnum;
  for (const auto* p = first; p != last && image->segment_count < kMaxSegments; ++p) {
    // memsz beyond filesz may end in pages that are readable too (.bss); tables and code are always in the file part.
    if (p->p_type != PT_LOAD || p->p_filesz == 0) continue;
    image->segments[image->segment_count++] = {bias + p->p_vaddr, bias + p->p_vaddr + p->p_filesz,
                                               (p->p_flags & PF_R) != 0, (p->p_flags & PF_X) != 0};
  }
  for (const auto* p = first; p != last && image->build_id_bytes == 0; ++p) {
    if (p->p_type == PT_NOTE) find_build_id(mapped(*image, bias + p->p_vaddr, p->p_filesz), p->p_align, image);
  }
  if (image->build_id_bytes != 0) return true;

  // Without a build id a rebuilt library at the same path, place and size is told by its headers and tables.
  uint64_t hash = mix(1, {reinterpret_cast<const uint8_t*>(first), reinterpret_cast<const uint8_t*>(last), true});
  // .eh_frame follows its index in what every linker writes, so one stretch holds both.
  for (uint32_t i = 0; i < image->segment_count && eh_frame_hdr != 0; ++i) {
    const Segment& s = image->segments[i];
    if (!s.readable || eh_frame_hdr < s.lo || eh_frame_hdr >= s.hi) continue;
    const uintptr_t bytes = s.hi - eh_frame_hdr < kFingerprintBytes ? s.hi - eh_frame_hdr : kFingerprintBytes;
    hash = mix(hash, mapped(*image, eh_frame_hdr, bytes));
  }
  image->fingerprint = hash | 1;
  return true;
}

}  // namespace traceaf::emitter::unwind
