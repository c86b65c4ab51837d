// Counts a loop, and prints what lemire/counters' users print: per element, on average and in the fastest run.

#include <cstdio>
#include <vector>

#include "counters/event_counter.h"

int main() {
  const std::size_t elements = 100000;
  std::vector<unsigned> values(elements, 3);
  counters::event_collector collector;
  if (!collector.has_events()) {
    std::printf("no counters, times only: %s\n", collector.error().c_str());
  }
  counters::event_aggregate aggregate;
  volatile unsigned sum = 0;
  for (int i = 0; i < 100; ++i) {
    collector.start();
    for (const unsigned value : values) sum = sum + value;
    aggregate << collector.end();
  }
  if (aggregate.iterations == 0) {
    std::printf("all %d regions were disturbed: %s\n", aggregate.disturbed, collector.count.disturbance.c_str());
    return 1;
  }
  std::printf("%.3f ns per element, fastest %.3f\n", aggregate.elapsed_ns() / elements,
              aggregate.fastest_elapsed_ns() / elements);
  if (aggregate.has_events) {
    std::printf("%.3f instructions, %.3f cycles, %.5f missed branches per element; %d regions left out\n",
                aggregate.instructions() / elements, aggregate.cycles() / elements,
                aggregate.missed_branches() / elements, aggregate.disturbed);
  }
  return 0;
}
