//! Texts for numbers of the driver, and numbers in texts. All texts are ASCII, because a Windows console can have any
//! code page.

pub mod argument;
pub mod format;
pub mod missing_feature;
pub mod ntstatus;
pub mod number;
pub mod processors;
pub mod register;
pub mod support;
pub mod unavailable;
