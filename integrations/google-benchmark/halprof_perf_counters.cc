// Counters of google/benchmark on Windows, by halprof.
//
// perf_counters.cc is compiled as with libpfm4 (HAVE_LIBPFM) and calls the functions below instead of libpfm4 and Linux.
// A descriptor of perf_event_open() stands for an event, that of the first event for the group. A group counts the
// thread that reads it, so each thread of a benchmark has a group of its own.
//
// google/benchmark reads the counters at the start and at the end of a region into two objects, one behind the other,
// and subtracts. The first reading gets zeros and the second one the counts of the region, so a region can be graded,
// and no event between two regions is counted.

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "halprof.h"
#include "halprof_benchmark.h"
#include "perfmon/pfmlib.h"

namespace {

// An event that counts disturbed regions: 1 for a region that is disturbed.
const char kDisturbed[] = "DISTURBED";

// Disturbed regions that are reported one by one.
const unsigned long kReported = 10;

struct Event {
  std::string name;
  int leader;
};

std::mutex mutex;
std::vector<std::string> names;    // by perf_event_attr::config
std::map<int, Event> descriptors;  // by descriptor
int last_descriptor = 0;

// The readings in which regions are open. All threads of a benchmark have the same two (google/benchmark issue 1929):
// if their regions overlap, a thread may subtract what another one has stored.
struct Readings {
  unsigned open = 0;
  bool shared = false;
};
std::map<const char*, Readings> readings;

// Regions of all groups.
unsigned long regions = 0;
unsigned long disturbed = 0;

void summarize() {
  if (disturbed != 0) {
    std::fprintf(stderr, "halprof: %lu of %lu regions were disturbed: their counts are not exact\n", disturbed, regions);
  }
}

// HALPROF_STRICT=1 ends the program at the first region that has no exact counts.
bool is_strict() {
  const char* value = std::getenv("HALPROF_STRICT");
  return value != nullptr && value[0] != '\0' && std::string(value) != "0";
}

void fail(const char* what, const char* why) {
  std::fprintf(stderr, "halprof: %s: %s\n", what, why);
  if (is_strict()) {
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  }
}

// The names that google/benchmark documents are those of perf in upper case. Names with other characters are those of
// processor makers and are taken as they are.
std::string halprof_name_of(const std::string& name) {
  std::string lower;
  for (const char letter : name) {
    if (!std::isupper(static_cast<unsigned char>(letter)) && letter != '-') return name;
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return lower;
}

// The group of a thread.
class ThreadGroup {
 public:
  explicit ThreadGroup(const std::vector<std::string>& events) : events_(events) {}
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup() {
    if (start_ != nullptr) leave(start_);
    halprof_close(group_);
  }

  // Opens the group. Prints why if it cannot.
  bool open() {
    std::string list;
    for (const std::string& event : events_) {
      if (event == kDisturbed) continue;
      list += (list.empty() ? "" : ",") + halprof_name_of(event);
    }
    if (halprof_open(HALPROF_ABI_VERSION, list.c_str(), HALPROF_USER, &group_) != HALPROF_OK ||
        halprof_calibrate(group_) != HALPROF_OK) {
      fail("the counters cannot be used", halprof_error_text());
      return false;
    }
    return true;
  }

  void announce() const {
    std::uint32_t quality = 0;
    const char* reason = "";
    if (halprof_availability(group_, &quality, &reason) != HALPROF_OK) return;
    static const char* const kQualities[] = {"unknown", "virtualized", "undisturbed", "disturbed"};
    std::fprintf(stderr, "halprof: best quality of the counts: %s%s%s\n", kQualities[quality & 3],
                 reason[0] == '\0' ? "" : ": ", reason);
  }

  std::ptrdiff_t read(std::uint64_t* values, std::size_t size) {
    const std::size_t bytes = (events_.size() + 1) * sizeof(std::uint64_t);
    if (size < bytes) return -1;
    for (std::size_t i = 0; i <= events_.size(); ++i) values[i] = 0;
    values[0] = events_.size();
    const char* place = reinterpret_cast<const char*>(values);
    const char* start = start_;
    start_ = nullptr;
    const bool is_end = start != nullptr && place == start + sizeof(benchmark::internal::PerfCounterValues);
    if (start != nullptr && !is_end) {  // a benchmark that was skipped by an error
      halprof_end(group_, nullptr);
      leave(start);
    }
    if (is_end) return end(values + 1, start) ? static_cast<std::ptrdiff_t>(bytes) : -1;
    enter(place);
    if (halprof_begin(group_) != HALPROF_OK) {
      leave(place);
      fail("a region cannot begin", halprof_error_text());
      return -1;
    }
    start_ = place;
    return static_cast<std::ptrdiff_t>(bytes);
  }

 private:
  static void enter(const char* start) {
    const std::lock_guard<std::mutex> lock(mutex);
    Readings& of_benchmark = readings[start];
    if (++of_benchmark.open > 1) of_benchmark.shared = true;
  }

  // Returns whether another thread had an open region with the same readings.
  static bool leave(const char* start) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = readings.find(start);
    const bool shared = found->second.shared;
    if (--found->second.open == 0) readings.erase(found);
    return shared;
  }

  // Stores the counts, or leaves them 0 and says so.
  bool end(std::uint64_t* values, const char* start) {
    halprof_result result = {};
    result.size = sizeof result;
    const bool has_counts = halprof_end(group_, &result) == HALPROF_OK;
    const bool is_shared = leave(start);
    if (!has_counts) {
      fail("a region has no counts", halprof_error_text());
      return false;
    }
    const bool is_disturbed = is_shared || result.quality == HALPROF_DISTURBED;
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (events_[i] == kDisturbed) {
        values[i] = is_disturbed ? 1 : 0;
      } else if (halprof_count(group_, index++, &values[i]) != HALPROF_OK) {
        fail("a region has no counts", halprof_error_text());
        return false;
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    ++regions;
    if (is_disturbed && ++disturbed <= kReported) {
      fail("the counts of a region are not exact",
           is_shared ? "threads of a benchmark share one pair of readings" : halprof_reason(group_));
    }
    return true;
  }

  std::vector<std::string> events_;
  halprof_group group_ = 0;
  const char* start_ = nullptr;  // where the first reading of the open region went
};

// The groups of this thread, by leader. They are closed when it ends.
thread_local std::map<int, ThreadGroup> groups;

// Returns the group of this thread, and opens it if necessary.
ThreadGroup* group_of(int leader) {
  const auto found = groups.find(leader);
  if (found != groups.end()) return &found->second;
  std::vector<std::string> events;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& descriptor : descriptors) {
      if (descriptor.second.leader == leader) events.push_back(descriptor.second.name);
    }
  }
  const auto opened = groups.emplace(std::piecewise_construct, std::forward_as_tuple(leader),
                                     std::forward_as_tuple(events)).first;
  if (opened->second.open()) return &opened->second;
  groups.erase(opened);
  return nullptr;
}

}  // namespace

int pfm_initialize() { return PFM_SUCCESS; }

int pfm_get_os_event_encoding(const char* name, int, pfm_os_t, pfm_perf_encode_arg_t* argument) {
  if (name[0] == '\0') return PFM_ERR_NOTFOUND;
  const std::lock_guard<std::mutex> lock(mutex);
  argument->attr->type = PERF_TYPE_RAW;
  argument->attr->config = names.size();
  names.push_back(name);
  return PFM_SUCCESS;
}

int halprof_pfm_open(const perf_event_attr* event, int leader) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (event->config >= names.size()) {
    errno = EINVAL;
    return -1;
  }
  const int descriptor = ++last_descriptor;
  descriptors[descriptor] = Event{names[event->config], leader < 0 ? descriptor : leader};
  return descriptor;
}

int halprof_pfm_control(int leader, int command) {
  if (command != PERF_EVENT_IOC_ENABLE) {
    groups.erase(leader);
    return 0;
  }
  static const bool registered = std::atexit(summarize) == 0;
  (void)registered;
  ThreadGroup* const group = group_of(leader);
  if (group == nullptr) {
    errno = EIO;
    return -1;
  }
  group->announce();
  return 0;
}

std::ptrdiff_t halprof_pfm_read(int descriptor, void* buffer, std::size_t size) {
  ThreadGroup* const group = group_of(descriptor);
  const std::ptrdiff_t bytes = group == nullptr ? -1 : group->read(static_cast<std::uint64_t*>(buffer), size);
  if (bytes < 0) errno = EIO;
  return bytes;
}

int halprof_pfm_close(int descriptor) {
  groups.erase(descriptor);
  const std::lock_guard<std::mutex> lock(mutex);
  return descriptors.erase(descriptor) == 1 ? 0 : -1;
}
