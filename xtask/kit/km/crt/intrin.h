/* Empty: bindings need no compiler intrinsics, and mingw-w64's <intrin.h> does not parse in MSVC mode. */
#pragma once
