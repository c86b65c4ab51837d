/* Uses every function of halprof.h, and each of them wrongly.
 *
 *     abi                    the driver is not there: opening must fail with a text
 *     abi EVENTS REGIONS     counts REGIONS regions and prints a line for each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_work.h"
#include "halprof.h"

#ifndef _WIN32
#include <pthread.h>
#endif

static int failures = 0;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("%s:%d: %s is wrong\n", __FILE__, __LINE__, #condition);          \
      failures++;                                                              \
    }                                                                          \
  } while (0)

/* What is counted: (region + 1) * 1000 instructions under the test bench, a loop elsewhere. */
static volatile unsigned sink;
static void work(unsigned region) {
  unsigned i;
  if (bench_execute(BENCH_INSTRUCTIONS, 1000 * (uint64_t)(region + 1))) return;
  for (i = 0; i < 1000 * (region + 1); i++) sink += i;
}

static void misuse(void) {
  halprof_group group = 77;
  uint64_t count = 99;
  uint32_t quality = 99;
  halprof_result result = {sizeof result, 0, 0, 0, 0, 0};

  CHECK(halprof_version() == HALPROF_ABI_VERSION);
  CHECK(halprof_error_text() != NULL && halprof_error_text()[0] == '\0');
  CHECK(halprof_open(HALPROF_ABI_VERSION, "instructions", 0, NULL) == HALPROF_BAD_ARGUMENT);
  CHECK(halprof_open(HALPROF_ABI_VERSION, NULL, 0, &group) == HALPROF_BAD_ARGUMENT);
  CHECK(group == 0);
  CHECK(halprof_open(0, "instructions", 0, &group) == HALPROF_BAD_VERSION);
  CHECK(halprof_open(HALPROF_ABI_VERSION + 1, "instructions", 0, &group) == HALPROF_BAD_VERSION);
  CHECK(strstr(halprof_error_text(), "version") != NULL);
  CHECK(halprof_open(HALPROF_ABI_VERSION, "instructions", 0x80, &group) == HALPROF_BAD_ARGUMENT);
  CHECK(halprof_open(HALPROF_ABI_VERSION, "", 0, &group) == HALPROF_BAD_ARGUMENT);
  CHECK(halprof_open_cpu(HALPROF_ABI_VERSION, NULL, 0, HALPROF_ALL_CPUS, &group) == HALPROF_BAD_ARGUMENT);

  CHECK(halprof_begin(12345) == HALPROF_BAD_HANDLE);
  CHECK(halprof_end(12345, &result) == HALPROF_BAD_HANDLE);
  CHECK(halprof_calibrate(12345) == HALPROF_BAD_HANDLE);
  CHECK(halprof_checkpoint(12345) == HALPROF_BAD_HANDLE);
  CHECK(halprof_count(12345, 0, &count) == HALPROF_BAD_HANDLE && count == 99);
  CHECK(halprof_availability(12345, &quality, NULL) == HALPROF_BAD_HANDLE && quality == 99);
  CHECK(halprof_name(12345, 0) == NULL && halprof_reason(12345) == NULL);
  CHECK(halprof_close(12345) == HALPROF_BAD_HANDLE);
  CHECK(halprof_close(0) == HALPROF_OK);
}

static halprof_group shared;

/* Every function that takes a handle, from a thread that does not own it. */
static void intrude(void) {
  uint64_t count = 99;
  uint32_t quality = 99;
  halprof_result result = {sizeof result, 99, 0, 0, 0, 0};
  CHECK(halprof_begin(shared) == HALPROF_WRONG_THREAD);
  CHECK(halprof_end(shared, &result) == HALPROF_WRONG_THREAD && result.quality == 99);
  CHECK(halprof_calibrate(shared) == HALPROF_WRONG_THREAD);
  CHECK(halprof_checkpoint(shared) == HALPROF_WRONG_THREAD);
  CHECK(halprof_count(shared, 0, &count) == HALPROF_WRONG_THREAD && count == 99);
  CHECK(halprof_availability(shared, &quality, NULL) == HALPROF_WRONG_THREAD && quality == 99);
  CHECK(halprof_name(shared, 0) == NULL && halprof_reason(shared) == NULL);
  CHECK(halprof_close(shared) == HALPROF_WRONG_THREAD);
}

#ifdef _WIN32
static DWORD WINAPI other(void *nothing) {
  (void)nothing;
  intrude();
  return 0;
}
static void in_another_thread(void) {
  HANDLE thread = CreateThread(NULL, 0, other, NULL, 0, NULL);
  CHECK(thread != NULL);
  if (thread == NULL) return;
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}
#else
static void *other(void *nothing) {
  (void)nothing;
  intrude();
  return NULL;
}
static void in_another_thread(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other, NULL) == 0);
  pthread_join(thread, NULL);
}
#endif

static void regions(const char *events, unsigned number) {
  static const char *const QUALITIES[] = {"none", "virtualized", "undisturbed", "disturbed"};
  halprof_group group;
  halprof_result result = {sizeof result, 0, 0, 0, 0, 0};
  const char *reason;
  uint64_t count;
  uint32_t best;
  unsigned region, event;

  if (halprof_open(HALPROF_ABI_VERSION, events, HALPROF_USER, &group) != HALPROF_OK) {
    printf("cannot open: %s\n", halprof_error_text());
    failures++;
    return;
  }
  CHECK(halprof_availability(group, &best, &reason) == HALPROF_OK);
  printf("best: %s %s\n", QUALITIES[best & 3], reason);
  CHECK(halprof_count(group, 0, &count) == HALPROF_BAD_ORDER);
  CHECK(halprof_end(group, &result) == HALPROF_BAD_ORDER);
  CHECK(halprof_checkpoint(group) == HALPROF_BAD_ORDER);
  CHECK(halprof_calibrate(group) == HALPROF_OK);
  shared = group;
  in_another_thread();
  for (region = 0; region < number; region++) {
    CHECK(halprof_begin(group) == HALPROF_OK);
    work(region);
    result.size = sizeof result;
    CHECK(halprof_end(group, &result) == HALPROF_OK);
    printf("region %u: %s", region, QUALITIES[result.quality & 3]);
    for (event = 0; event < result.events; event++) {
      CHECK(halprof_count(group, event, &count) == HALPROF_OK);
      printf(" %s=%llu", halprof_name(group, event), (unsigned long long)count);
    }
    printf(" %s\n", halprof_reason(group));
  }
  CHECK(halprof_name(group, result.events) == NULL);
  CHECK(halprof_begin(group) == HALPROF_OK);
  CHECK(halprof_begin(group) == HALPROF_BAD_ORDER);
  CHECK(halprof_checkpoint(group) == HALPROF_OK);
  result.size = 4;
  CHECK(halprof_end(group, &result) == HALPROF_BAD_ARGUMENT);
  CHECK(halprof_end(group, NULL) == HALPROF_OK);
  CHECK(halprof_close(group) == HALPROF_OK);
  CHECK(halprof_close(group) == HALPROF_BAD_HANDLE);
}

int main(int argc, char **argv) {
  misuse();
  if (argc == 3) {
    regions(argv[1], (unsigned)atoi(argv[2]));
  } else {
    halprof_group group = 77;
    CHECK(halprof_open(HALPROF_ABI_VERSION, "instructions,cycles", 0, &group) == HALPROF_NO_DRIVER);
    CHECK(group == 0);
    printf("without the driver: %s\n", halprof_error_text());
  }
  printf("%d failures\n", failures);
  return failures != 0;
}
