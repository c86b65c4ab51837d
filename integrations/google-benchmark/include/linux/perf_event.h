// The names of perf_event.h that perf_counters.cc uses, with values of our own: nothing here reaches Linux.

#ifndef HALPROF_PERF_EVENT_H
#define HALPROF_PERF_EVENT_H

#include <cstdint>

struct perf_event_attr {
  std::uint32_t type;
  std::uint32_t size;
  std::uint64_t config;  // position of the name in a table of halprof_perf_counters.cc
  std::uint64_t read_format;
  bool disabled;
  bool inherit;
  bool pinned;
  bool exclude_user;
  bool exclude_kernel;
  bool exclude_hv;
};

enum { PERF_TYPE_HARDWARE = 0, PERF_TYPE_RAW = 4 };
enum { PERF_COUNT_HW_MAX = 10 };
enum { PERF_PMU_TYPE_SHIFT = 32 };
enum { PERF_FORMAT_GROUP = 8 };
enum { PERF_EVENT_IOC_ENABLE = 1, PERF_EVENT_IOC_DISABLE = 2 };

#endif  // HALPROF_PERF_EVENT_H
