// Counts regions of known numbers of events under the test bench, with the header in the shape of lemire/counters.

#include <cstdio>

#include "bench_work.h"
#include "counters/event_counter.h"

int main() {
  counters::event_collector collector;
  if (!collector.has_events()) {
    std::printf("no counters: %s\n", collector.error().c_str());
    return 1;
  }
  counters::event_aggregate aggregate;
  for (int region = 0; region < 10; ++region) {
    collector.start();
    bench_execute(BENCH_INSTRUCTIONS, 2000);
    bench_execute(BENCH_BRANCHES, 300);
    aggregate << collector.end();
  }
  std::printf("%.1f instructions, %.1f branches, %d exact, %d disturbed\n", aggregate.instructions(),
              aggregate.branches(), aggregate.iterations, aggregate.disturbed);
  return 0;
}
