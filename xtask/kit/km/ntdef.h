/*
 * mingw-w64 computes a field's offset through a null pointer, which clang in MSVC mode does not accept as a constant
 * expression. It accepts the builtin.
 */
#pragma once

#include_next <ntdef.h>

#undef FIELD_OFFSET
#define FIELD_OFFSET(Type, Field) ((LONG)__builtin_offsetof(Type, Field))
