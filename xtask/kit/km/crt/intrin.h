/* Compiler intrinsics have no place in bindings, and mingw-w64's own <intrin.h> does not parse in MSVC mode. */
#pragma once
