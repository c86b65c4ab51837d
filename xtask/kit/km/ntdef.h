/*
 * mingw-w64 reads a field's offset through a null pointer, which clang in MSVC mode takes for no constant expression.
 * The builtin is one.
 */
#pragma once

#include_next <ntdef.h>

#undef FIELD_OFFSET
#define FIELD_OFFSET(Type, Field) ((LONG)__builtin_offsetof(Type, Field))
