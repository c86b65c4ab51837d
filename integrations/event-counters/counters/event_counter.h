// Event counters of the current thread on Windows, in the shape of lemire/counters, over halprof.
//
// Code that includes "counters/event_counter.h" of lemire/counters compiles with this header instead:
//
//     counters::event_collector collector;
//     collector.start();
//     work();
//     counters::event_count count = collector.end();
//     count.instructions();
//
// Additions: `event_count::counted`, `exact` and `disturbance`, `event_aggregate::disturbed`, and
// `event_collector::error`. An aggregate leaves out regions whose counts are not exact, so that no average contains one.
//
// Header only. Link with halprof.lib, or with libhalprof.a.

#ifndef COUNTERS__EVENT_COUNTER_H
#define COUNTERS__EVENT_COUNTER_H

#include <cctype>  // lemire/counters includes these three, and its users may rely on them
#include <cinttypes>
#include <cstring>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "halprof.h"

namespace counters {

// What happened in a region.
struct event_count {
  // Positions in `event_counts`.
  enum event_counter_types { CPU_CYCLES, INSTRUCTIONS, BRANCH, BRANCH_MISSES, CACHE_MISSES };

  std::chrono::duration<double> elapsed{0};
  std::vector<unsigned long long> event_counts = std::vector<unsigned long long>(5);
  // Whether there were counters.
  bool counted = false;
  // Whether the counts are those of this thread alone. Without counters this is false.
  bool exact = false;
  // Why they are not.
  std::string disturbance;

  event_count() = default;
  event_count(std::chrono::duration<double> time, const std::vector<unsigned long long>& counts)
      : elapsed(time), event_counts(counts), counted(true), exact(true) {
    event_counts.resize(5);
  }

  double elapsed_sec() const { return elapsed.count(); }
  double elapsed_ns() const { return elapsed.count() * 1e9; }
  double cycles() const { return count(CPU_CYCLES); }
  double instructions() const { return count(INSTRUCTIONS); }
  double branches() const { return count(BRANCH); }
  double branch_misses() const { return count(BRANCH_MISSES); }
  double missed_branches() const { return branch_misses(); }
  double cache_misses() const { return count(CACHE_MISSES); }

  event_count& operator+=(const event_count& other) {
    elapsed += other.elapsed;
    for (std::size_t i = 0; i < event_counts.size(); ++i) event_counts[i] += other.event_counts[i];
    counted = counted && other.counted;
    exact = exact && other.exact;
    if (disturbance.empty()) disturbance = other.disturbance;
    return *this;
  }
  event_count operator+(const event_count& other) const { return event_count(*this) += other; }

 private:
  double count(event_counter_types type) const { return static_cast<double>(event_counts[type]); }
};

// Several regions of the same work: their averages, and the fastest and the slowest one.
struct event_aggregate {
  bool has_events = false;
  int iterations = 0;
  int inner_count = 1;  // repetitions of the work in a region
  int disturbed = 0;    // regions that were left out, because their counts are not exact
  event_count total{};
  event_count best{};
  event_count worst{};

  void operator<<(const event_count& other) {
    has_events = has_events || other.counted;
    if (other.counted && !other.exact) {
      ++disturbed;
      return;
    }
    if (iterations == 0) {
      total = best = worst = other;
    } else {
      if (other.elapsed < best.elapsed) best = other;
      if (other.elapsed > worst.elapsed) worst = other;
      total += other;
    }
    ++iterations;
  }

  template <typename T>
  event_aggregate& operator/=(T divisor) {
    total.elapsed /= static_cast<double>(divisor);
    for (unsigned long long& count : total.event_counts) {
      count = static_cast<unsigned long long>(static_cast<double>(count) / static_cast<double>(divisor));
    }
    return *this;
  }

  double elapsed_sec() const { return average(total.elapsed_sec()); }
  double elapsed_ns() const { return average(total.elapsed_ns()); }
  double total_elapsed_ns() const { return total.elapsed_ns(); }
  double cycles() const { return average(total.cycles()); }
  double instructions() const { return average(total.instructions()); }
  double branches() const { return average(total.branches()); }
  double branch_misses() const { return average(total.branch_misses()); }
  double missed_branches() const { return branch_misses(); }
  double cache_misses() const { return average(total.cache_misses()); }
  double fastest_elapsed_ns() const { return best.elapsed_ns() / inner_count; }
  double fastest_cycles() const { return best.cycles() / inner_count; }
  double fastest_instructions() const { return best.instructions() / inner_count; }
  double fastest_branches() const { return best.branches() / inner_count; }
  double fastest_branch_misses() const { return best.branch_misses() / inner_count; }
  double fastest_cache_misses() const { return best.cache_misses() / inner_count; }
  int iteration_count() const { return iterations; }
  int inner_iteration_count() const { return inner_count; }

 private:
  double average(double sum) const { return sum / iterations / inner_count; }
};

// Counts regions of the thread that constructs it. Another thread gets regions without counts.
struct event_collector {
  event_count count{};
  std::chrono::time_point<std::chrono::steady_clock> start_clock{};

  // Opens five events. A processor or a session with fewer free counters gets the first four, or three, or two.
  event_collector() {
    static const char* const kEvents[] = {
        "cycles,instructions,branches,branch-misses,cache-misses",
        "cycles,instructions,branches,branch-misses",
        "cycles,instructions,branch-misses",
        "cycles,instructions",
    };
    for (const char* events : kEvents) {
      const halprof_status status = halprof_open(HALPROF_ABI_VERSION, events, HALPROF_USER, &group_);
      if (status == HALPROF_OK && halprof_calibrate(group_) == HALPROF_OK) {
        three_ = events == kEvents[2];
        error_.clear();
        return;
      }
      if (error_.empty()) error_ = halprof_error_text();
      halprof_close(group_);
      group_ = 0;
      if (status != HALPROF_REFUSED && status != HALPROF_BAD_EVENT) return;
    }
  }
  ~event_collector() { halprof_close(group_); }
  event_collector(const event_collector&) = delete;
  event_collector& operator=(const event_collector&) = delete;
  event_collector(event_collector&& other) noexcept
      : count(other.count), start_clock(other.start_clock), group_(other.group_), three_(other.three_),
        error_(other.error_) {
    other.group_ = 0;
  }

  bool has_events() const { return group_ != 0; }
  // Why has_events() is false; empty if it is true.
  const std::string& error() const { return error_; }

  void start() {
    started_ = group_ != 0 && halprof_begin(group_) == HALPROF_OK;
    if (group_ != 0 && !started_) failure_ = halprof_error_text();
    start_clock = std::chrono::steady_clock::now();
  }

  event_count& end() {
    const auto end_clock = std::chrono::steady_clock::now();
    halprof_result result = {};
    result.size = sizeof result;
    count.counted = started_ && halprof_end(group_, &result) == HALPROF_OK;
    if (started_ && !count.counted) failure_ = halprof_error_text();
    started_ = false;
    count.elapsed = end_clock - start_clock;
    count.exact = count.counted && result.quality != HALPROF_DISTURBED;
    count.disturbance = count.counted ? halprof_reason(group_) : group_ != 0 ? failure_ : error_;
    for (std::size_t i = 0; i < count.event_counts.size(); ++i) {
      std::uint64_t value = 0;
      if (count.counted) halprof_count(group_, index_of(i), &value);  // an event that is not counted stays 0
      count.event_counts[i] = value;
    }
    return count;
  }

 private:
  std::uint32_t index_of(std::size_t type) const {
    if (!three_ || type < event_count::BRANCH) return static_cast<std::uint32_t>(type);
    return type == event_count::BRANCH_MISSES ? 2 : UINT32_MAX;
  }

  halprof_group group_ = 0;
  bool three_ = false;
  bool started_ = false;
  std::string error_;
  std::string failure_;
};

inline bool has_performance_counters() { return event_collector().has_events(); }

}  // namespace counters

#endif  // COUNTERS__EVENT_COUNTER_H
