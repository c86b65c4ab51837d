//! The last branches that a processor took, in registers: Intel's last branch records, legacy and architectural, and
//! AMD's Last Branch Stack version 2.

mod missing_feature;

pub use missing_feature::MissingFeature;
