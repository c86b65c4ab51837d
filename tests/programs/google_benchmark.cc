// A benchmark for google/benchmark whose iterations execute known numbers of events under the test bench.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bench_work.h"

static void BM_instructions(benchmark::State& state) {
  for (auto _ : state) {
    if (!bench_execute(BENCH_INSTRUCTIONS, static_cast<uint64_t>(state.range(0)))) {
      state.SkipWithError("this benchmark needs the test bench");
      break;
    }
  }
}
BENCHMARK(BM_instructions)->Arg(1000)->Arg(123456)->Iterations(8);

static void BM_branches(benchmark::State& state) {
  for (auto _ : state) {
    bench_execute(BENCH_INSTRUCTIONS, 700);
    bench_execute(BENCH_BRANCHES, 90);
  }
}
BENCHMARK(BM_branches)->Iterations(4);

// Two threads whose regions overlap: no region ends before both have begun.
static void BM_overlap(benchmark::State& state) {
  static std::atomic<int> begun(0);
  for (auto _ : state) {
    const int own = ++begun;
    while (begun < (own + 1) / 2 * 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    bench_execute(BENCH_INSTRUCTIONS, 500);
  }
}
BENCHMARK(BM_overlap)->Threads(2)->Iterations(1);

BENCHMARK_MAIN();
