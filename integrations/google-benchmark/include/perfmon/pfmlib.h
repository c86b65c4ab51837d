// The part of libpfm4's interface that perf_counters.cc uses, over halprof. See halprof_perf_counters.cc.

#ifndef HALPROF_PFMLIB_H
#define HALPROF_PFMLIB_H

#include "linux/perf_event.h"

#define PFM_SUCCESS 0
#define PFM_ERR_NOTFOUND (-4)
#define PFM_PLM3 0x8  // user mode

enum pfm_os_t { PFM_OS_PERF_EVENT, PFM_OS_PERF_EVENT_EXT };

struct pfm_perf_encode_arg_t {
  perf_event_attr* attr;
};

int pfm_initialize();
// Stores what perf_event_open() needs in `argument->attr`. Whether the machine has the event turns out later.
int pfm_get_os_event_encoding(const char* name, int mode, pfm_os_t os, pfm_perf_encode_arg_t* argument);

// In place of perf_event_open(2), ioctl(2) and close(2) on descriptors.
int halprof_pfm_open(const perf_event_attr* event, int leader);
int halprof_pfm_control(int leader, int command);
int halprof_pfm_close(int descriptor);

#endif  // HALPROF_PFMLIB_H
