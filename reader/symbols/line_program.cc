// Decoding of line number programs. Every length is checked: the bytes may be corrupt.
#include "reader/symbols/line_program.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>

namespace traceaf::reader::symbols {

// Bounds-checked little-endian reading; after a fault everything reads as 0 and bad() stays true.
class LineProgram::Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  [[nodiscard]] bool bad() const { return bad_; }
  [[nodiscard]] bool done() const { return bad_ || at_ >= data_.size(); }
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] size_t left() const { return bad_ ? 0 : data_.size() - at_; }

  uint64_t fixed(unsigned bytes) {
    if (bytes > 8 || left() < bytes) return fail();
    uint64_t value = 0;
    std::memcpy(&value, data_.data() + at_, bytes);
    at_ += bytes;
    return value;
  }
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < data_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(data_[at_++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
      if ((byte & 128) == 0) return value;
    }
    return fail();
  }
  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < data_.size();) {
      const auto byte = static_cast<uint8_t>(data_[at_++]);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
      shift += 7;
      if ((byte & 128) != 0) continue;
      if ((byte & 64) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    fail();
    return 0;
  }
  std::string_view text() {
    const size_t end = bad_ ? std::string_view::npos : data_.find('\0', at_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    const std::string_view value = data_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }
  std::string_view take(uint64_t bytes) {
    if (bytes > left()) {
      fail();
      return {};
    }
    const std::string_view value = data_.substr(at_, bytes);
    at_ += bytes;
    return value;
  }

 private:
  uint64_t fail() {
    bad_ = true;
    return 0;
  }
  std::string_view data_;
  size_t at_ = 0;
  bool bad_ = false;
};

namespace {

std::string_view string_at(std::string_view section, uint64_t offset) {
  if (offset >= section.size()) return {};
  const size_t end = section.find('\0', offset);
  return end == std::string_view::npos ? std::string_view() : section.substr(offset, end - offset);
}

}  // namespace

LineProgram::LineProgram(Elf* elf, uint64_t offset, std::string directory, bool split)
    : section_(debug_section(elf, "debug_line", split)),
      strings_(debug_section(elf, "debug_str", split)),
      line_strings_(debug_section(elf, "debug_line_str", split)),
      comp_dir_(std::move(directory)) {
  if (offset >= section_.size()) return;
  Reader in(section_.substr(offset));
  ok_ = read_header(in);
  if (!ok_) program_ = {};
}

bool LineProgram::read_header(Reader& in) {
  unsigned offset_bytes = 4;
  uint64_t length = in.fixed(4);
  if (length == 0xffffffff) {
    length = in.fixed(8);
    offset_bytes = 8;
  }
  Reader unit(in.take(std::min<uint64_t>(length, in.left())));
  version_ = static_cast<unsigned>(unit.fixed(2));
  if (version_ < 2 || version_ > 5) return false;
  if (version_ >= 5) unit.fixed(2);  // sizes of an address and of a segment selector
  const uint64_t header_bytes = unit.fixed(offset_bytes);
  Reader header(unit.take(header_bytes));
  program_ = unit.take(unit.left());
  min_instruction_ = static_cast<uint8_t>(header.fixed(1));
  if (version_ >= 4) header.fixed(1);  // operations of a VLIW instruction
  header.fixed(1);                     // default_is_stmt
  line_base_ = static_cast<int8_t>(header.fixed(1));
  line_range_ = static_cast<uint8_t>(header.fixed(1));
  opcode_base_ = static_cast<uint8_t>(header.fixed(1));
  if (unit.bad() || header.bad() || line_range_ == 0 || opcode_base_ == 0) return false;
  opcode_lengths_ = header.take(opcode_base_ - 1u);
  return version_ >= 5 ? read_tables_v5(header, offset_bytes) : read_tables_v4(header);
}

bool LineProgram::read_tables_v4(Reader& in) {
  directories_.emplace_back();  // 0: the unit's own
  while (!in.bad()) {
    const std::string_view name = in.text();
    if (name.empty()) break;
    directories_.push_back(name);
  }
  files_.emplace_back();  // numbers start with 1
  while (!in.bad()) {
    Name file{in.text(), 0};
    if (file.name.empty()) break;
    file.directory = in.uleb();
    in.uleb();  // modification time
    in.uleb();  // size
    files_.push_back(file);
  }
  return !in.bad();
}

bool LineProgram::read_tables_v5(Reader& in, unsigned offset_bytes) {
  for (const bool of_files : {false, true}) {
    struct Field {
      uint64_t content, form;
    };
    std::vector<Field> fields(in.fixed(1));
    for (Field& field : fields) {
      field.content = in.uleb();
      field.form = in.uleb();
    }
    const uint64_t count = in.uleb();
    for (uint64_t i = 0; i < count && !in.bad(); ++i) {
      const size_t before = in.at();
      Name entry;
      for (const Field& field : fields) {
        std::string_view text;
        uint64_t number = 0;
        switch (field.form) {
          case DW_FORM_string:
            text = in.text();
            break;
          case DW_FORM_line_strp:
            text = string_at(line_strings_, in.fixed(offset_bytes));
            break;
          case DW_FORM_strp:
            text = string_at(strings_, in.fixed(offset_bytes));
            break;
          case DW_FORM_udata:
            number = in.uleb();
            break;
          case DW_FORM_data1:
            number = in.fixed(1);
            break;
          case DW_FORM_data2:
            number = in.fixed(2);
            break;
          case DW_FORM_data4:
            number = in.fixed(4);
            break;
          case DW_FORM_data8:
            number = in.fixed(8);
            break;
          case DW_FORM_data16:
            in.take(16);
            break;
          case DW_FORM_block:
            in.take(in.uleb());
            break;
          case DW_FORM_block1:
            in.take(in.fixed(1));
            break;
          default:
            return false;
        }
        if (field.content == DW_LNCT_path) entry.name = text;
        if (field.content == DW_LNCT_directory_index) entry.directory = number;
      }
      if (in.at() == before) return false;  // entries of no bytes: the count means nothing
      if (of_files) {
        files_.push_back(entry);
      } else {
        directories_.push_back(entry.name);
      }
    }
  }
  return !in.bad();
}

const std::string& LineProgram::file(uint64_t number) {
  auto [it, fresh] = paths_.try_emplace(number);
  if (fresh && number < files_.size() && !files_[number].name.empty()) it->second = path_of(files_[number]);
  return it->second;
}

std::string LineProgram::path_of(const Name& entry) const {
  if (entry.name.front() == '/') return std::string(entry.name);
  std::string path(entry.name);
  const auto prepend = [&path](std::string_view directory) {
    if (directory.empty() || path.front() == '/') return;
    path.insert(0, directory.ends_with('/') ? "" : "/");
    path.insert(0, directory);
  };
  if (entry.directory < directories_.size()) prepend(directories_[entry.directory]);
  // Since DWARF 5 directory 0 is the unit's own.
  if (version_ >= 5 && !directories_.empty()) {
    if (entry.directory != 0) prepend(directories_[0]);
  } else {
    prepend(comp_dir_);
  }
  return path;
}

std::vector<LineHit> LineProgram::find(const std::vector<uint64_t>& addresses, const CodeRanges& code) {
  struct Row {
    uint64_t address = 0;
    uint32_t file = 1, line = 1, column = 0;
  };
  std::vector<LineHit> hits(addresses.size());
  Row row, last;
  // Per file the last row that has a line, of the sequence with that number.
  struct Lender {
    Row row;
    uint64_t sequence = 0;
  };
  std::vector<Lender> lenders(files_.size());
  uint64_t sequence = 0;
  bool open = false, skip = false;  // inside a sequence; of a discarded function
  size_t next = 0;                  // first address that is not below `last`

  const auto hit_of = [&](const Row& from) {
    LineHit hit{from.file, from.line, from.column, true, 0};
    if (from.line == 0 && from.file < lenders.size() && lenders[from.file].sequence == sequence) {
      const Row& lender = lenders[from.file].row;
      hit = {from.file, lender.line, lender.column, true, lender.address};
    }
    return hit;
  };
  const auto emit = [&](bool end) {
    if (!open) {
      open = true;
      ++sequence;
      skip = end || !code.holds(row.address);
      if (!skip) {
        next =
            static_cast<size_t>(std::lower_bound(addresses.begin(), addresses.end(), row.address) - addresses.begin());
      }
    } else if (!skip) {
      for (; next < addresses.size() && addresses[next] < row.address; ++next) {
        if (!hits[next].found) hits[next] = hit_of(last);
      }
    }
    last = row;
    if (row.line != 0 && row.file < lenders.size()) lenders[row.file] = {row, sequence};
    if (!end) return;
    open = false;
    row = Row{};
  };

  Reader in(program_);
  const uint64_t const_add = static_cast<uint64_t>((255 - opcode_base_) / line_range_) * min_instruction_;
  while (!in.done()) {
    const auto opcode = static_cast<uint8_t>(in.fixed(1));
    if (opcode >= opcode_base_) {
      const unsigned adjusted = opcode - opcode_base_;
      row.address += static_cast<uint64_t>(adjusted / line_range_) * min_instruction_;
      row.line += static_cast<uint32_t>(line_base_ + static_cast<int>(adjusted % line_range_));
      emit(false);
      continue;
    }
    switch (opcode) {
      case 0: {
        Reader extended(in.take(in.uleb()));
        if (in.bad()) break;
        switch (extended.fixed(1)) {
          case DW_LNE_end_sequence:
            emit(true);
            break;
          case DW_LNE_set_address:
            row.address = extended.fixed(static_cast<unsigned>(extended.left()));
            break;
          case DW_LNE_define_file: {
            Name file{extended.text(), 0};
            file.directory = extended.uleb();
            if (!extended.bad()) files_.push_back(file);
            break;
          }
          default:
            break;
        }
        break;
      }
      case DW_LNS_copy:
        emit(false);
        break;
      case DW_LNS_advance_pc:
        row.address += in.uleb() * min_instruction_;
        break;
      case DW_LNS_advance_line:
        row.line += static_cast<uint32_t>(in.sleb());
        break;
      case DW_LNS_set_file:
        row.file = static_cast<uint32_t>(in.uleb());
        break;
      case DW_LNS_set_column:
        row.column = static_cast<uint32_t>(in.uleb());
        break;
      case DW_LNS_const_add_pc:
        row.address += const_add;
        break;
      case DW_LNS_fixed_advance_pc:
        row.address += in.fixed(2);
        break;
      default:
        for (auto n = static_cast<uint8_t>(opcode_lengths_[opcode - 1u]); n > 0; --n) in.uleb();
        break;
    }
  }
  return hits;
}

}  // namespace traceaf::reader::symbols
