//! What is known of the machine, in the words of OpenTelemetry's semantic conventions.

use std::env::consts;

/// Returns the name of the host.
pub(crate) fn name() -> String {
    gethostname::gethostname().to_string_lossy().into_owned()
}

/// Returns the value of `os.type`.
pub(crate) fn system() -> &'static str {
    match consts::OS {
        "macos" => "darwin",
        system => system,
    }
}

/// Returns the value of `host.arch`.
pub(crate) fn architecture() -> &'static str {
    match consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        architecture => architecture,
    }
}
