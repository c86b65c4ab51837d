//! What a platform of plain memory does for the engine's requests to Windows: it grants them.

/// The functions of [`Platform`](engine::Platform) that concern neither processors nor the handler of the interrupt.
macro_rules! grant_everything {
    () => {
        fn ask_hal(&self, _records: &mut [protocol::HalSourceRecord]) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn wants_session_events(&self) -> bool {
            false
        }

        fn write_event(&self, _event: &engine::TraceEvent<'_>) {}

        fn ring_memory(&self, _processor: pmu::ProcessorIndex, bytes: usize) -> Option<sample_ring::Memory> {
            sample_ring::Memory::allocate(bytes)
        }

        fn now(&self) -> engine::Duration100ns {
            engine::Duration100ns(0)
        }

        fn timer_interval(&self, wanted: u32) -> u32 {
            wanted
        }

        fn start_timers(&self, _processors: &protocol::ProcessorSet, _interval: u32) -> bool {
            true
        }

        fn stop_timers(&self) {}

        fn clock_frequency(&self) -> u64 {
            10_000_000
        }

        fn configure_thread_profiling(&self, _count: u32) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn release_thread_profiling(&self) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn add_processor(&self, _processor: pmu::ProcessorIndex) -> bool {
            false
        }

        fn reserve_counters(&self) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn free_counters(&self) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn pause(&self, _duration: engine::Duration100ns) {}

        fn open_local_apic(&self) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn close_local_apic(&self) {}

        fn is_shadowed(&self) -> Result<bool, protocol::NtStatus> {
            Ok(false)
        }

        fn current_processor(&self) -> pmu::ProcessorIndex {
            pmu::ProcessorIndex::BOOT
        }

        fn allocate_area(
            &self,
            _processor: pmu::ProcessorIndex,
            _by: engine::AreaAllocator,
        ) -> Result<engine::ControlArea, engine::AreaRefused> {
            Err(engine::AreaRefused { status: protocol::status::STATUS_NOT_SUPPORTED, address: 0 })
        }

        fn free_area(&self, _processor: pmu::ProcessorIndex) -> Result<(), protocol::NtStatus> {
            Ok(())
        }

        fn run_ticks(&self, _processors: &protocol::ProcessorSet) -> bool {
            true
        }
    };
}

pub(crate) use grant_everything;
