// Function names in short form, and which functions are the plumbing of an allocation rather than its cause.
#pragma once

#include <string>
#include <string_view>

namespace traceaf::reader::views {

// "std::vector<int, std::allocator<int> >::push_back(int&&)" -> "std::vector<>::push_back": template arguments,
// parameters and the return type are left out. A name with unbalanced brackets is returned unchanged.
std::string short_function(std::string_view name);

// True for allocators, operator new, our own library and the containers of the language's own library: a site is named
// after the first frame that is none of these. `module` is the path of the object, `file` that of the source.
bool is_plumbing(std::string_view function, std::string_view file, std::string_view module);

}  // namespace traceaf::reader::views
