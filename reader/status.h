// Errors of the reader as values: what failed, where in the file, what was expected and found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace traceaf::reader {

struct Error {
  std::string message;  // "expected EndOfGeneration, found event 57"
  std::string file;
  std::optional<uint64_t> offset;  // in the plain (uncompressed) trace unless `compressed`
  bool compressed = false;
  std::optional<uint64_t> generation, batch;

  // "FILE: offset 1234 (generation 2, batch 7): expected ..., found ..."
  [[nodiscard]] std::string text() const;
};

// Either a value or an Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}      // NOLINT: conversion wanted
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: conversion wanted
  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

using Failure = std::optional<Error>;  // of a function without a value: empty means success

}  // namespace traceaf::reader
