// Included before every source file of google/benchmark: `-include halprof_benchmark.h`, or `/FI` of MSVC.
//
// PerfCounters::Snapshot() reads counters on every system except Windows. It is an inline function of the header
// perf_counters.h, so that header is read here once as on another system. Nothing else of google/benchmark changes.

#ifndef HALPROF_BENCHMARK_H
#define HALPROF_BENCHMARK_H

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

// What perf_counters.h includes is read before, as on Windows.
#include "benchmark/benchmark.h"
#include "check.h"
#include "internal_macros.h"
#include "log.h"
#include "mutex.h"

#if defined(__MINGW32__)
#include <unistd.h>
#elif defined(_MSC_VER)
typedef std::ptrdiff_t ssize_t;
#endif

// In place of read(2) on the descriptor of a group. Fills `buffer` with a number that nothing uses and one value for
// each event: 0 at the start of a region, the counts at its end. Returns the number of bytes, or -1.
std::ptrdiff_t halprof_pfm_read(int descriptor, void* buffer, std::size_t size);

#if defined(BENCHMARK_OS_WINDOWS)
#undef BENCHMARK_OS_WINDOWS
#define read halprof_pfm_read
#include "perf_counters.h"
#undef read
#define BENCHMARK_OS_WINDOWS 1
#endif

#endif  // HALPROF_BENCHMARK_H
