//! Publishes what `.\client agent` measures: counts for Prometheus and OpenTelemetry, and profiles for a server or a
//! folder. It knows nothing of the driver: its input is a [`Snapshot`] of numbers, or the bytes of a profile.
//!
//! | module | contents |
//! |---|---|
//! | `config` | the file `agent.toml` |
//! | `family` | the one table of metrics, which every output and the dashboard follow |
//! | `snapshot` | the numbers of a moment |
//! | `openmetrics`, `text_format` | snapshots as text for Prometheus, and for what reads its older format alone |
//! | `server` | the endpoint that Prometheus scrapes |
//! | `otlp` | the export to an OpenTelemetry collector |
//! | `profiles` | profiles in a folder, and on their way to a server |
//! | `dashboard` | the dashboard and the rules of `integrations`, which a test makes from the table |

#![forbid(unsafe_code)]

pub mod config;
#[cfg(test)]
mod dashboard;
mod error;
mod family;
mod host;
mod http;
pub mod openmetrics;
mod otlp;
pub mod profiles;
mod server;
mod snapshot;
pub mod text_format;

pub use error::StartError;
pub use family::{Family, Kind, Unit};
pub use otlp::Otlp;
pub use server::{Server, ServerError, Statistics};
pub use snapshot::{Label, Latest, Point, Snapshot, Value};
