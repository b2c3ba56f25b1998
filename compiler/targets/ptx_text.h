// ptx_text.h - what the text of a kernel's PTX says of it, for those who assemble it in several ways.
#pragma once
#include <string>

namespace tile::ir {

/// Of the entry: the directive in front of which bounds of registers are put.
inline constexpr const char* kThreadsDirective = ".reqntid ";

/// The name after `.entry`; "?" where there is none.
std::string entryOf(const std::string& ptx);
/// Threads of a program; 0 where the text does not say.
int threadsOf(const std::string& ptx);
/// The text with another directive ("maxnreg 128") for a kernel that says how many threads it has.
std::string withDirective(const std::string& ptx, const std::string& directive);

}  // namespace tile::ir
