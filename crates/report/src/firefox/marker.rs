//! Markers for rates of events, losses, throttling and sleep.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerGraphType, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StaticSchemaMarkerGraph, StringHandle,
};

const SOURCE: StaticSchemaMarkerField = StaticSchemaMarkerField {
    key: "source",
    label: "Source",
    format: MarkerFieldFormat::String,
    flags: MarkerFieldFlags::SEARCHABLE,
};

/// Samples were lost before this time.
pub struct Lost {
    pub source: StringHandle,
    /// Number of lost samples.
    pub samples: f64,
}

impl StaticSchemaMarker for Lost {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Lost";
    const DESCRIPTION: Option<&'static str> = Some("Samples that were lost before this time.");
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.samples}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.samples} samples of {marker.data.source}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        SOURCE,
        StaticSchemaMarkerField {
            key: "samples",
            label: "Samples",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("Lost")
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.source
    }

    fn number_field_value(&self, _: u32) -> f64 {
        self.samples
    }
}

/// A thread did not run during this interval.
pub struct OffCpu {
    /// What it waited for, or that it was ready.
    pub reason: StringHandle,
    /// The thread that made it ready, if it is known.
    pub waker: StringHandle,
}

impl StaticSchemaMarker for OffCpu {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "OffCpu";
    const DESCRIPTION: Option<&'static str> =
        Some("The thread did not run: it waited, or was ready and another one ran.");
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.reason}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.reason} {marker.data.waker}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        StaticSchemaMarkerField {
            key: "reason",
            label: "Reason",
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
        StaticSchemaMarkerField {
            key: "waker",
            label: "Made ready by",
            format: MarkerFieldFormat::String,
            flags: MarkerFieldFlags::SEARCHABLE,
        },
    ];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("Off CPU")
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, index: u32) -> StringHandle {
        if index == 0 { self.reason } else { self.waker }
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

/// Events during this interval. The Firefox Profiler draws them as a line in the track of the processor.
pub struct Rate {
    pub source: StringHandle,
    /// Events in a second.
    pub per_second: f64,
}

impl StaticSchemaMarker for Rate {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Rate";
    const DESCRIPTION: Option<&'static str> = Some("Events in a second, by the samples of this interval.");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.rate} {marker.data.source} in a second");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        SOURCE,
        StaticSchemaMarkerField {
            key: "rate",
            label: "Events in a second",
            format: MarkerFieldFormat::Integer,
            flags: MarkerFieldFlags::empty(),
        },
    ];
    const GRAPHS: &'static [StaticSchemaMarkerGraph] =
        &[StaticSchemaMarkerGraph { key: "rate", graph_type: MarkerGraphType::LineFilled, color: None }];

    /// Each source has a name of its own, because the Firefox Profiler draws a line for each name.
    fn name(&self, _: &mut Profile) -> StringHandle {
        self.source
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.source
    }

    fn number_field_value(&self, _: u32) -> f64 {
        self.per_second
    }
}

/// Declares a marker whose only field is the source.
macro_rules! source_marker {
    ($(#[$attribute:meta])* $name:ident, $description:literal, $table_label:expr) => {
        $(#[$attribute])*
        pub struct $name {
            pub source: StringHandle,
        }

        impl StaticSchemaMarker for $name {
            const UNIQUE_MARKER_TYPE_NAME: &'static str = stringify!($name);
            const DESCRIPTION: Option<&'static str> = Some($description);
            const TABLE_LABEL: Option<&'static str> = $table_label;
            const FIELDS: &'static [StaticSchemaMarkerField] = &[SOURCE];

            fn name(&self, profile: &mut Profile) -> StringHandle {
                profile.intern_string(Self::UNIQUE_MARKER_TYPE_NAME)
            }

            fn category(&self, _: &mut Profile) -> CategoryHandle {
                CategoryHandle::OTHER
            }

            fn string_field_value(&self, _: u32) -> StringHandle {
                self.source
            }

            /// The marker has no number field.
            fn number_field_value(&self, _: u32) -> f64 {
                0.0
            }
        }
    };
}

source_marker!(
    /// Interrupts had used up their time budget: nothing is sampled during this interval.
    Throttled,
    "The interrupts of the processor had used up their time budget.",
    Some("{marker.data.source}")
);
source_marker!(
    /// The counters do not interrupt: nothing is sampled during this interval.
    Disconnected,
    "The interrupt of the counters did not lead to the HAL.",
    Some("{marker.data.source}")
);
source_marker!(
    /// The machine slept: nothing is sampled during this interval.
    Slept,
    "The machine slept.",
    None
);
source_marker!(
    /// Interrupts came that no counter explained: nothing was sampled from this moment on.
    Silenced,
    "Too many interrupts in a row came that no counter explained.",
    None
);
