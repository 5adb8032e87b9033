// Search and parsing of .eh_frame (see eh_frame.h).
#include "emitter/unwind/eh_frame.h"

#include <dwarf.h>

#include <cstring>

namespace traceaf::emitter::unwind {

namespace {

constexpr uint8_t kFormat = 0x0f;
constexpr uint8_t kBase = 0x70;
constexpr uint8_t kIndexEntry = DW_EH_PE_datarel | DW_EH_PE_sdata4;

// Bytes of one entry behind its length field; empty at the end of the section.
Bytes entry_at(const ModuleRecord& module, uintptr_t at) {
  Bytes in = module.readable_from(at);
  uint64_t length = in.fixed<uint32_t>();
  if (length == 0xffffffff) length = in.fixed<uint64_t>();
  return in.take(length);
}

// Fills what the common entry at `at` says.
__attribute__((noinline)) bool parse_common(const ModuleRecord& module, uintptr_t at, Description* common) {
  Bytes in = entry_at(module, at);
  if (in.fixed<uint32_t>() != 0) return false;  // the id of a common entry in .eh_frame
  const uint8_t version = in.u8();
  if (version != 1 && version != 3 && version != 4) return false;
  const uint8_t* letter = in.at;
  while (in.u8() != 0) {
  }
  if (version == 4) in.skip(2);  // address size, segment selector size
  const uint64_t code_align = in.uleb();
  const int64_t data_align = in.sleb();
  const uint64_t ra_register = version == 1 ? in.u8() : in.uleb();
  if (code_align > UINT32_MAX || data_align < INT32_MIN || data_align > INT32_MAX || ra_register > UINT8_MAX) {
    return false;
  }
  common->code_align = static_cast<uint32_t>(code_align);
  common->data_align = static_cast<int32_t>(data_align);
  common->ra_register = static_cast<uint8_t>(ra_register);
  common->encoding = DW_EH_PE_absptr;
  common->has_augmentation_data = false;
  common->signal_frame = false;
  if (!in.ok) return false;
  if (*letter == 'z') {
    common->has_augmentation_data = true;
    Bytes data = in.take(in.uleb());
    for (bool known = true; known && *++letter != 0;) {
      switch (*letter) {
        case 'R':
          common->encoding = data.u8();
          break;
        case 'L':
          data.skip(1);
          break;
        case 'P': {
          const uint8_t encoding = data.u8();
          if (encoding == DW_EH_PE_aligned) {
            data.skip((8 - data.address() % 8) % 8 + 8);
          } else {
            read_encoded(&data, encoding & kFormat, 0);
          }
          break;
        }
        case 'S':
          common->signal_frame = true;
          break;
        case 'B':
          break;  // AArch64 only; has no data
        default:
          known = false;
      }
    }
    if (!data.ok) return false;
  } else if (*letter != 0) {
    return false;  // the size of unknown data cannot be known
  }
  common->initial = {in.at, in.end};
  return in.ok;
}

// Parses the entry at `at`, which covers `*bytes` from out->begin. False for a common or a malformed entry.
bool parse_description(const ModuleRecord& module, uintptr_t at, Description* out, uintptr_t* bytes) {
  Bytes in = entry_at(module, at);
  const uintptr_t id_at = in.address();
  const uint32_t distance = in.fixed<uint32_t>();
  if (!in.ok || distance == 0 || distance > id_at) return false;
  if (!parse_common(module, id_at - distance, out)) return false;
  out->begin = read_encoded(&in, out->encoding, 0);
  *bytes = read_encoded(&in, out->encoding & kFormat, 0);
  if (!in.ok) return false;
  if (out->has_augmentation_data) in.skip(in.uleb());
  out->instructions = {in.at, in.end};
  return in.ok;
}

// The same, and false too when it does not cover `pc`.
bool parse_description_of(const ModuleRecord& module, uintptr_t at, uintptr_t pc, Description* out) {
  uintptr_t bytes = 0;
  return parse_description(module, at, out, &bytes) && pc >= out->begin && pc - out->begin < bytes;
}

// For objects whose linker left the index out.
bool search_all(const ModuleRecord& module, uintptr_t section, uintptr_t pc, Description* out) {
  for (uintptr_t at = section;;) {
    const Bytes entry = entry_at(module, at);
    if (!entry.ok || entry.left() < 4) return false;
    if (parse_description_of(module, at, pc, out)) return true;
    at = reinterpret_cast<uintptr_t>(entry.end);
  }
}

}  // namespace

uintptr_t read_encoded(Bytes* in, uint8_t encoding, uintptr_t data_base) {
  if (encoding == DW_EH_PE_omit || (encoding & DW_EH_PE_indirect) != 0) {
    in->fail();
    return 0;
  }
  uintptr_t base = 0;
  switch (encoding & kBase) {
    case DW_EH_PE_absptr:
      break;
    case DW_EH_PE_pcrel:
      base = in->address();
      break;
    case DW_EH_PE_datarel:
      base = data_base;
      if (base == 0) in->fail();
      break;
    default:
      in->fail();
  }
  switch (encoding & kFormat) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      return base + in->fixed<uint64_t>();
    case DW_EH_PE_uleb128:
      return base + in->uleb();
    case DW_EH_PE_sleb128:
      return base + static_cast<uintptr_t>(in->sleb());
    case DW_EH_PE_udata2:
      return base + in->fixed<uint16_t>();
    case DW_EH_PE_sdata2:
      return base + static_cast<uintptr_t>(intptr_t{in->fixed<int16_t>()});
    case DW_EH_PE_udata4:
      return base + in->fixed<uint32_t>();
    case DW_EH_PE_sdata4:
      return base + static_cast<uintptr_t>(intptr_t{in->fixed<int32_t>()});
    default:
      in->fail();
      return 0;
  }
}

bool read_entry(const ModuleRecord& module, uintptr_t at, Description* out, uintptr_t* bytes, uintptr_t* next) {
  const Bytes entry = entry_at(module, at);
  *next = entry.ok && entry.left() >= 4 ? reinterpret_cast<uintptr_t>(entry.end) : 0;
  return *next != 0 && parse_description(module, at, out, bytes);
}

bool find_description(const ModuleRecord& module, uintptr_t pc, Description* description) {
  const uintptr_t header = module.eh_frame_hdr;
  Bytes in = module.readable_from(header);
  if (in.u8() != 1) return false;
  const uint8_t section_encoding = in.u8(), count_encoding = in.u8(), index_encoding = in.u8();
  const uintptr_t section = read_encoded(&in, section_encoding, header);
  if (!in.ok) return false;
  if (count_encoding == DW_EH_PE_omit || index_encoding != kIndexEntry) {
    return search_all(module, section, pc, description);
  }
  const uint64_t count = read_encoded(&in, count_encoding, header);
  if (!in.ok || count == 0 || count > in.left() / 8) return false;
  // The last entry that begins at or before pc. Entries are two words relative to the header.
  const auto word = [&in](uint64_t entry, unsigned which) {
    int32_t value = 0;
    std::memcpy(&value, in.at + entry * 8 + which * 4, sizeof(value));
    return intptr_t{value};
  };
  const auto wanted = static_cast<intptr_t>(pc - header);
  uint64_t lo = 0, hi = count;
  while (hi - lo > 1) {
    const uint64_t middle = lo + (hi - lo) / 2;
    if (word(middle, 0) <= wanted) {
      lo = middle;
    } else {
      hi = middle;
    }
  }
  if (word(lo, 0) > wanted) return false;
  return parse_description_of(module, header + static_cast<uintptr_t>(word(lo, 1)), pc, description);
}

}  // namespace traceaf::emitter::unwind
