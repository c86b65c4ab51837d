//! Markers for losses, throttling and sleep.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, Profile, StaticSchemaMarker, StaticSchemaMarkerField,
    StringHandle,
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

/// Interrupts had used up their time budget: nothing is sampled during this interval.
pub struct Throttled {
    pub source: StringHandle,
}

impl StaticSchemaMarker for Throttled {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Throttled";
    const DESCRIPTION: Option<&'static str> = Some("The interrupts of the processor had used up their time budget.");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.source}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[SOURCE];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("Throttled")
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

/// The machine slept: nothing is sampled during this interval.
pub struct Slept {
    pub source: StringHandle,
}

impl StaticSchemaMarker for Slept {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Slept";
    const DESCRIPTION: Option<&'static str> = Some("The machine slept.");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[SOURCE];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("Slept")
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

/// Interrupts came that no counter explained: nothing was sampled from this moment on.
pub struct Silenced {
    pub source: StringHandle,
}

impl StaticSchemaMarker for Silenced {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Silenced";
    const DESCRIPTION: Option<&'static str> = Some("Too many interrupts in a row came that no counter explained.");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[SOURCE];

    fn name(&self, profile: &mut Profile) -> StringHandle {
        profile.intern_string("Silenced")
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.source
    }

    /// There is no such field.
    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}
