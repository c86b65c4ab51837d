//! The file `agent.toml`.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use thiserror::Error;

/// Everything that the agent does. Only `[counting]` is required.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What is counted.
    pub counting: Counting,
    /// What it may cost.
    #[serde(default)]
    pub budget: Budget,
    /// The endpoint that Prometheus scrapes; none without this section.
    pub prometheus: Option<Prometheus>,
    /// The collector to which metrics are sent; none without this section.
    pub otlp: Option<Otlp>,
    /// Profiles; none without this section.
    pub profiles: Option<Profiles>,
}

/// What is counted.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Counting {
    /// Events, as `.\client stat -e` takes them; several in one text are a group.
    #[serde(default)]
    pub events: Vec<String>,
    /// Metrics, as `.\client stat -M` takes them.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Time between two readings.
    #[serde(default = "ten_seconds", deserialize_with = "duration")]
    pub interval: Duration,
    /// Labels of the counts: none, the core type of a hybrid, or the CPU.
    #[serde(default)]
    pub by: By,
}

/// How counts are summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Over all CPUs of a core type.
    #[default]
    CoreType,
    /// Not at all.
    Cpu,
}

/// What the agent may cost each CPU. The agent lengthens its intervals until it stays below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Budget {
    /// Accesses of performance registers per second.
    pub register_accesses_per_second: u32,
    /// Performance monitor interrupts and timer expiries per second.
    pub interrupts_per_second: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { register_accesses_per_second: 1_000, interrupts_per_second: 100 }
    }
}

/// The endpoint that Prometheus scrapes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prometheus {
    /// Address and port.
    #[serde(default = "loopback")]
    pub listen: SocketAddr,
    /// Certificates and key for TLS; plain HTTP without them.
    pub tls: Option<Tls>,
    /// Users that may scrape; everybody without them.
    #[serde(default)]
    pub users: Vec<User>,
}

/// Certificates and key for TLS.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tls {
    /// File of the certificate chain, in PEM.
    pub certificate: PathBuf,
    /// File of the private key, in PEM.
    pub key: PathBuf,
}

/// A user for basic authentication.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct User {
    /// Name.
    pub name: String,
    /// Hash of the password by bcrypt, as Prometheus' own web configuration has it.
    pub password_hash: String,
}

/// The collector to which metrics are sent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Otlp {
    /// Address of the receiver for OTLP over HTTP, such as `http://127.0.0.1:4318/v1/metrics`.
    pub endpoint: String,
    /// Time between two exports.
    #[serde(default = "a_minute", deserialize_with = "duration")]
    pub interval: Duration,
    /// Headers of each request, such as `Authorization`.
    #[serde(default)]
    pub headers: Vec<Header>,
    /// Attributes of the resource, beside those that the agent knows.
    #[serde(default)]
    pub attributes: Vec<Header>,
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Header {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// Profiles.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profiles {
    /// Time from the begin of a profile to that of the next.
    #[serde(default = "a_minute", deserialize_with = "duration")]
    pub every: Duration,
    /// Duration of a profile.
    #[serde(default = "ten_seconds", deserialize_with = "duration")]
    pub duration: Duration,
    /// The event that is sampled, as `.\client record -e` takes it; time by default, which needs no counter.
    #[serde(default = "time")]
    pub event: String,
    /// Samples per second and CPU.
    #[serde(default = "forty_nine")]
    pub frequency: u32,
    /// Whether call stacks are recorded.
    #[serde(default)]
    pub stacks: bool,
    /// A folder into which profiles are written; none by default.
    pub folder: Option<Folder>,
    /// A server to which profiles are sent; none by default.
    pub push: Option<Push>,
}

/// A folder of profiles.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// Age at which a profile is deleted.
    #[serde(default = "a_week", deserialize_with = "duration")]
    pub keep: Duration,
    /// Size of all profiles in MiB, beyond which the oldest are deleted.
    #[serde(default = "a_gibibyte")]
    pub limit_mib: u64,
}

/// A server for profiles.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Push {
    /// The interface.
    pub to: Server,
    /// Address of the server, such as `http://127.0.0.1:4040`.
    pub url: String,
    /// Name of the application, by which the server lists the profiles.
    #[serde(default = "halprof")]
    pub application: String,
    /// Headers of each request, such as `Authorization`.
    #[serde(default)]
    pub headers: Vec<Header>,
    /// Folder in which profiles wait for the server.
    pub buffer: PathBuf,
    /// Size of the waiting profiles in MiB, beyond which the oldest are dropped.
    #[serde(default = "sixty_four_mebibytes")]
    pub buffer_limit_mib: u64,
    /// Time after which a request fails.
    #[serde(default = "ten_seconds", deserialize_with = "duration")]
    pub timeout: Duration,
}

/// An interface for profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// `POST /ingest` of Pyroscope.
    Pyroscope,
    /// `POST /api/profiles/writeraw` of Parca, with JSON.
    Parca,
}

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// It is not what the agent expects.
    #[error("{path} is malformed")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        cause: Box<toml::de::Error>,
    },
    /// Values contradict each other, or are out of range.
    #[error("{0}")]
    Invalid(String),
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is malformed or out of range.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |cause| ConfigError::Unreadable { path: path.to_owned(), cause };
        let text = fs::read(path).and_then(|bytes| decode(&bytes)).map_err(unreadable)?;
        let malformed = |cause| ConfigError::Malformed { path: path.to_owned(), cause: Box::new(cause) };
        let config: Self = toml::from_str(&text).map_err(malformed)?;
        config.check()?;
        Ok(config)
    }

    /// Checks what the format of the file alone does not say.
    fn check(&self) -> Result<(), ConfigError> {
        let invalid = |text: &str| Err(ConfigError::Invalid(text.to_owned()));
        let Counting { events, metrics, interval, .. } = &self.counting;
        if events.is_empty() && metrics.is_empty() {
            return invalid("[counting] names neither an event nor a metric");
        }
        if *interval < Duration::from_secs(1) {
            return invalid("the interval in [counting] is shorter than a second");
        }
        if self.budget.register_accesses_per_second == 0 || self.budget.interrupts_per_second == 0 {
            return invalid("a [budget] of zero allows nothing");
        }
        if self.otlp.as_ref().is_some_and(|otlp| otlp.interval < Duration::from_secs(1)) {
            return invalid("the interval in [otlp] is shorter than a second");
        }
        let Some(profiles) = &self.profiles else { return Ok(()) };
        if profiles.duration < Duration::from_secs(1) || profiles.every < profiles.duration {
            return invalid("in [profiles], `duration` is at least a second, and `every` is not shorter");
        }
        if profiles.frequency == 0 || profiles.frequency > self.budget.interrupts_per_second {
            return invalid("`frequency` in [profiles] is zero, or beyond `interrupts-per-second` in [budget]");
        }
        if profiles.folder.is_none() && profiles.push.is_none() {
            return invalid("[profiles] has neither `folder` nor `push`");
        }
        Ok(())
    }
}

/// Returns the text of a file in UTF-8, or in UTF-16 as Windows PowerShell redirects output.
fn decode(bytes: &[u8]) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it is neither UTF-8 nor UTF-16");
    if let Some(text) = bytes.strip_prefix(b"\xFF\xFE") {
        let units = text.chunks_exact(2).filter_map(|unit| Some(u16::from_le_bytes(unit.try_into().ok()?)));
        return char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| invalid());
    }
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    str::from_utf8(text).map(str::to_owned).map_err(|_| invalid())
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|cause| de::Error::custom(format!("`{text}` is no duration: {cause}")))
}

const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}

const fn a_minute() -> Duration {
    Duration::from_mins(1)
}

const fn a_week() -> Duration {
    Duration::from_hours(7 * 24)
}

/// The port is in none of the lists of exporters of Prometheus.
const fn loopback() -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9_478)
}

fn time() -> String {
    "Time".to_owned()
}

fn halprof() -> String {
    "halprof".to_owned()
}

const fn forty_nine() -> u32 {
    49
}

const fn a_gibibyte() -> u64 {
    1_024
}

const fn sixty_four_mebibytes() -> u64 {
    64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn a_short_file_has_the_defaults() {
        let config = parse("[counting]\nevents = [\"cycles\"]\n[prometheus]\n").unwrap();
        assert_eq!(config.counting.interval, Duration::from_secs(10));
        assert_eq!(config.budget, Budget { register_accesses_per_second: 1_000, interrupts_per_second: 100 });
        let listen = config.prometheus.unwrap().listen;
        assert!(listen.ip().is_loopback(), "{listen}");
        assert!(config.otlp.is_none() && config.profiles.is_none());
    }

    #[test]
    fn a_file_can_be_redirected_by_any_shell() {
        let text = "[counting]\nevents = [\"cycles\"] # \u{fc}\n";
        let utf_16: Vec<u8> = [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let with_mark = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
        for bytes in [text.as_bytes(), &utf_16, &with_mark] {
            assert_eq!(decode(bytes).unwrap(), text);
        }
        for bytes in [&b"\xFFcycles"[..], b"\xFF\xFE\x00\xD8"] {
            assert_eq!(decode(bytes).unwrap_err().to_string(), "it is neither UTF-8 nor UTF-16");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let counting = "[counting]\nevents = [\"cycles\"]\n";
        let cases = [
            ("", "missing field `counting`"),
            ("[counting]\n", "neither an event nor a metric"),
            ("[counting]\nevents = [\"cycles\"]\ninterval = \"10\"\n", "`10` is no duration"),
            ("[counting]\nevents = [\"cycles\"]\ninterval = \"10ms\"\n", "shorter than a second"),
            ("[counting]\nevent = [\"cycles\"]\n", "unknown field `event`"),
            (&format!("{counting}[budget]\ninterrupts-per-second = 0\n"), "allows nothing"),
            (&format!("{counting}[prometheus]\nlisten = \"localhost\"\n"), "invalid socket address"),
            (&format!("{counting}[profiles]\n"), "neither `folder` nor `push`"),
            (&format!("{counting}[profiles]\nfrequency = 1000\nfolder.path = \"x\"\n"), "beyond"),
            (&format!("{counting}[profiles]\nduration = \"2m\"\nfolder.path = \"x\"\n"), "`every` is not shorter"),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
