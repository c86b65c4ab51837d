// The calls to the kernel of perf_counters.cc, over halprof. Only that file includes this header, as its last one, so
// the macros concern no other code.

#ifndef HALPROF_PFMLIB_PERF_EVENT_H
#define HALPROF_PFMLIB_PERF_EVENT_H

#include <cerrno>

#include "halprof_benchmark.h"
#include "perfmon/pfmlib.h"

#define perf_event_open(attr, process, cpu, leader, flags) halprof_pfm_open(attr, leader)
#define ioctl halprof_pfm_control
#define close halprof_pfm_close
#define read halprof_pfm_read

#endif  // HALPROF_PFMLIB_PERF_EVENT_H
