/* A library for C with fixed counts: the first three regions are undisturbed, the later ones are not. */
#include "halprof.h"

static unsigned regions;

uint32_t halprof_version(void) { return HALPROF_ABI_VERSION; }

halprof_status halprof_open(uint32_t version, const char *events, uint32_t flags, halprof_group *group) {
  *group = 7;
  return version == HALPROF_ABI_VERSION && events[0] == 'i' && flags == HALPROF_USER ? HALPROF_OK : HALPROF_FAILED;
}

halprof_status halprof_availability(halprof_group group, uint32_t *quality, const char **reason) {
  *quality = HALPROF_UNDISTURBED;
  *reason = "not virtualized: a stand-in";
  return group == 7 ? HALPROF_OK : HALPROF_BAD_HANDLE;
}

halprof_status halprof_calibrate(halprof_group group) { return group == 7 ? HALPROF_OK : HALPROF_BAD_HANDLE; }

halprof_status halprof_begin(halprof_group group) { return group == 7 ? HALPROF_OK : HALPROF_BAD_HANDLE; }

halprof_status halprof_end(halprof_group group, halprof_result *result) {
  if (group != 7 || result->size != sizeof *result) return HALPROF_BAD_ARGUMENT;
  result->quality = ++regions > 3 ? HALPROF_DISTURBED : HALPROF_UNDISTURBED;
  result->events = 2;
  result->time_enabled = 1000;
  return HALPROF_OK;
}

halprof_status halprof_count(halprof_group group, uint32_t index, uint64_t *count) {
  *count = index == 0 ? 12345 : 678;
  return group == 7 && index < 2 ? HALPROF_OK : HALPROF_BAD_ARGUMENT;
}

const char *halprof_name(halprof_group group, uint32_t index) { return group == 7 && index == 0 ? "instructions" : 0; }

const char *halprof_reason(halprof_group group) {
  return group == 7 && regions > 3 ? "the thread was switched out once" : "";
}

const char *halprof_error_text(void) { return "the stand-in failed"; }

halprof_status halprof_close(halprof_group group) { return group == 7 ? HALPROF_OK : HALPROF_BAD_HANDLE; }
