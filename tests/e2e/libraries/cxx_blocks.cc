// A C++ library for programs that have no libstdc++ of their own: makes and deletes blocks by every plain form.
#include <new>

extern "C" int cxx_blocks(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    ::operator delete(::operator new(100));
    ::operator delete[](::operator new[](200));
    ::operator delete (::operator new (64, std::align_val_t{64}), std::align_val_t{64});
    ::operator delete(::operator new(32, std::nothrow), std::nothrow);
  }
  try {
    volatile std::size_t huge = std::size_t{1} << 60;
    ::operator delete(::operator new(huge));
  } catch (const std::bad_alloc&) {
    return 4 * rounds + 1;
  }
  return 0;
}
