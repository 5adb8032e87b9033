// Exports what the launcher recognises a sanitizer by.
extern "C" void __asan_init() {}  // NOLINT: a reserved name on purpose
