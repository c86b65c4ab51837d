/* What a program executes under the test bench. Wine executes instructions on the processor of the
 * machine, where the model does not count them, so the program says what its thread executes. The
 * functions are in thread-profiling.dll, which is loaded under the bench only. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stdint.h>

/* An AMD processor's event of retired instructions. */
#define BENCH_INSTRUCTIONS 0xC0
/* The same of retired branches. */
#define BENCH_BRANCHES 0xC2

#ifdef _WIN32
#include <windows.h>

typedef uint32_t(WINAPI *bench_execute_event_function)(uint32_t, uint32_t, uint64_t, uint64_t);
typedef uint64_t(WINAPI *bench_ledger_function)(uint32_t, uint32_t, uint32_t);

static FARPROC bench_function(const char *name) {
  HMODULE module = GetModuleHandleA("thread-profiling.dll");
  return module == NULL ? NULL : GetProcAddress(module, name);
}

/* Executes events in user mode. Returns 0 without the bench. */
static inline int bench_execute(uint32_t event, uint64_t count) {
  bench_execute_event_function execute =
      (bench_execute_event_function)(void (*)(void))bench_function("bench_execute_event");
  return execute != NULL && execute(event, 0, count, 0) == 0;
}

/* Returns how many events the thread has executed in user mode. */
static inline uint64_t bench_executed(uint32_t event) {
  bench_ledger_function ledger = (bench_ledger_function)(void (*)(void))bench_function("bench_ledger");
  return ledger == NULL ? 0 : ledger(event, 0, 0);
}
#else
static inline int bench_execute(uint32_t event, uint64_t count) {
  (void)event;
  (void)count;
  return 0;
}
static inline uint64_t bench_executed(uint32_t event) {
  (void)event;
  return 0;
}
#endif

#endif
