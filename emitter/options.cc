// The parser of TRACEALLOCFREE (see options.h and options.inc).
#include "emitter/options.h"

#include <cstring>

namespace traceaf::emitter {
namespace {

struct Text {
  const char* at;
  size_t size;
  [[nodiscard]] bool is(const char* word) const { return strlen(word) == size && memcmp(at, word, size) == 0; }
};

// Digits with at most one decimal point; `*thousandths` gets the value times 1000. False when it is no such number.
bool parse_decimal(Text text, uint64_t* thousandths, size_t* used) {
  uint64_t value = 0;
  size_t i = 0;
  int decimals = -1;
  bool digits = false;
  for (; i < text.size; ++i) {
    const char c = text.at[i];
    if (c == '.' && decimals < 0) {
      decimals = 0;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      if (decimals >= 3) continue;  // finer than can be used
      if (value > UINT64_MAX / 100000) return false;
      value = value * 10 + static_cast<uint64_t>(c - '0');
      if (decimals >= 0) ++decimals;
    } else {
      break;
    }
  }
  for (int d = decimals < 0 ? 0 : decimals; d < 3; ++d) value *= 10;
  *thousandths = value;
  *used = i;
  return digits;
}

// NUMBER with an optional suffix K, M or G (powers of 1024), in [low, high].
bool parse_size(Text text, uint64_t low, uint64_t high, uint64_t* out) {
  uint64_t thousandths = 0;
  size_t used = 0;
  if (!parse_decimal(text, &thousandths, &used)) return false;
  unsigned shift = 0;
  if (used + 1 == text.size) {
    switch (text.at[used]) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        return false;
    }
  } else if (used != text.size) {
    return false;
  }
  const auto value = static_cast<uint64_t>((static_cast<unsigned __int128>(thousandths) << shift) / 1000);
  if (value < low || value > high) return false;
  *out = value;
  return true;
}

bool parse_bool(Text text, bool* out) {
  if (!text.is("0") && !text.is("1")) return false;
  *out = text.at[0] == '1';
  return true;
}

// Every item of the table as a user would write it: "0, 1, standby, out=PATTERN, ...".
struct Accepted {
  char text[512] = "";
  size_t size = 0;
  constexpr void add(const char* s) {
    while (*s != 0) text[size++] = *s++;
  }
};
constexpr Accepted kAccepted = [] {
  Accepted list;
#define TRACEAF_OPTION(option, values, standard, help) \
  list.add(list.size == 0 ? "" : ", ");                \
  list.add(#option);                                   \
  list.add(values[0] == 0 ? "" : "=");                 \
  list.add(values);
#include "emitter/wire/options.inc"
#undef TRACEAF_OPTION
  return list;
}();

// Each setter returns nullptr, or what is accepted.
const char* set_option(Text name, Text value, Options* o) {
  if (name.is("out")) {
    if (value.size == 0 || value.size >= Options::kPatternRoom) return "a file name of 1 to 1023 bytes";
    memcpy(o->out, value.at, value.size);
    o->out[value.size] = 0;
    return nullptr;
  }
  if (name.is("compress")) {
    if (!value.is("zstd") && !value.is("none")) return "zstd or none";
    o->compress = value.is("zstd");
    return nullptr;
  }
  if (name.is("buffer")) {
    return parse_size(value, uint64_t{1} << 20, uint64_t{4} << 30, &o->buffer_bytes) ? nullptr : "a size from 1M to 4G";
  }
  if (name.is("generation")) {
    uint64_t thousandths = 0;
    size_t used = 0;
    if (!parse_decimal(value, &thousandths, &used) || used != value.size || thousandths < 10 || thousandths > 3600000)
      return "seconds from 0.01 to 3600";
    o->generation_ns = thousandths * 1000000;
    return nullptr;
  }
  if (name.is("generation_size")) {
    return parse_size(value, uint64_t{64} << 10, uint64_t{1} << 30, &o->generation_bytes) ? nullptr
                                                                                          : "a size from 64K to 1G";
  }
  if (name.is("depth")) {
    uint64_t depth = 0;
    if (!parse_size(value, 1, 4096, &depth)) return "a number from 1 to 4096";
    o->depth = static_cast<uint32_t>(depth);
    return nullptr;
  }
  if (name.is("stacks")) {
    if (value.is("alloc"))
      o->stacks = Stacks::kAlloc;
    else if (value.is("both"))
      o->stacks = Stacks::kBoth;
    else if (value.is("none"))
      o->stacks = Stacks::kNone;
    else
      return "alloc, both or none";
    return nullptr;
  }
  if (name.is("follow")) return parse_bool(value, &o->follow) ? nullptr : "0 or 1";
  if (name.is("guard")) return parse_bool(value, &o->guard) ? nullptr : "0 or 1";
  return kAccepted.text;
}

const char* set_word(Text word, Options* o) {
  if (word.is("0"))
    o->state = wire::RecordState::kOff;
  else if (word.is("1"))
    o->state = wire::RecordState::kOn;
  else if (word.is("standby"))
    o->state = wire::RecordState::kStandby;
  else
    return set_option(word, {"", 0}, o);
  return nullptr;
}

}  // namespace

OptionError parse_options(const char* text, Options* options) {
  OptionError error;
  options->state = wire::RecordState::kOff;
  if (text == nullptr) return error;
  const char* at = text;
  while (*at != 0) {
    const char* end = at;
    while (*end != 0 && *end != ',') ++end;
    const Text item{at, static_cast<size_t>(end - at)};
    const char* accepted = nullptr;
    if (item.size != 0) {
      const auto* equals = static_cast<const char*>(memchr(item.at, '=', item.size));
      accepted = equals == nullptr ? set_word(item, options)
                                   : set_option({item.at, static_cast<size_t>(equals - item.at)},
                                                {equals + 1, static_cast<size_t>(end - equals - 1)}, options);
    }
    if (accepted != nullptr) {
      const size_t shown = item.size < sizeof(error.item) - 1 ? item.size : sizeof(error.item) - 1;
      memcpy(error.item, item.at, shown);
      error.item[shown] = 0;
      error.accepted = accepted;
      return error;
    }
    at = *end == ',' ? end + 1 : end;
  }
  return error;
}

}  // namespace traceaf::emitter
