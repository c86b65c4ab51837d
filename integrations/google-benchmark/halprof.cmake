# Counters of google/benchmark on Windows, by halprof. Configure an unmodified google/benchmark with
#
#     -DCMAKE_PROJECT_benchmark_INCLUDE=.../halprof.cmake -DHALPROF_ROOT=.../package
#
# HALPROF_ROOT is the folder with halprof.h and halprof.lib (or libhalprof.a, with HALPROF_STATIC=ON).

if(NOT WIN32)
  return()
endif()

set(HALPROF_ROOT "" CACHE PATH "The folder with halprof.h and halprof.lib")
option(HALPROF_STATIC "Link the static library of halprof, so that programs need no halprof.dll" OFF)
set(HALPROF_ADAPTER "${CMAKE_CURRENT_LIST_DIR}")

if(NOT EXISTS "${HALPROF_ROOT}/halprof.h")
  message(FATAL_ERROR "HALPROF_ROOT is \"${HALPROF_ROOT}\", a folder without halprof.h")
endif()

function(halprof_add_counters)
  target_sources(benchmark PRIVATE "${HALPROF_ADAPTER}/halprof_perf_counters.cc")
  target_compile_definitions(benchmark PRIVATE HAVE_LIBPFM)
  target_include_directories(benchmark PRIVATE
    "${HALPROF_ADAPTER}/include" "${HALPROF_ROOT}" "${benchmark_SOURCE_DIR}/src")
  if(MSVC)
    target_compile_options(benchmark PRIVATE "/FI${HALPROF_ADAPTER}/include/halprof_benchmark.h")
  else()
    target_compile_options(benchmark PRIVATE -include "${HALPROF_ADAPTER}/include/halprof_benchmark.h")
  endif()
  if(NOT HALPROF_STATIC)
    target_link_libraries(benchmark PRIVATE "${HALPROF_ROOT}/halprof.lib")
  elseif(MSVC)
    target_link_libraries(benchmark PRIVATE "${HALPROF_ROOT}/halprof_static.lib" ntdll userenv ws2_32 dbghelp)
  else()
    target_link_libraries(benchmark PRIVATE "${HALPROF_ROOT}/libhalprof.a" ntdll userenv ws2_32 dbghelp)
  endif()
endfunction()

# The target `benchmark` exists when the project has been read.
cmake_language(DEFER CALL halprof_add_counters)
