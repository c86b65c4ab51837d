// A benchmark of two loops, of which one has branches that cannot be predicted.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

static std::vector<std::uint32_t> numbers(bool random) {
  std::vector<std::uint32_t> numbers(4096);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    state = state * 1664525 + 1013904223;
    numbers[i] = random ? state : static_cast<std::uint32_t>(i) << 20;
  }
  return numbers;
}

static void BM_sum_of_large_ones(benchmark::State& state) {
  const auto values = numbers(state.range(0) != 0);
  for (auto _ : state) {
    std::uint64_t sum = 0;
    for (const std::uint32_t value : values) {
      if (value >= 0x80000000) sum += value;
      benchmark::DoNotOptimize(sum);
    }
  }
}
BENCHMARK(BM_sum_of_large_ones)->ArgName("random")->Arg(0)->Arg(1);

BENCHMARK_MAIN();
