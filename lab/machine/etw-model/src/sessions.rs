//! The sessions of a machine, and the errors that the documentation describes.

use bench_protocol::ProviderId;
use std::{collections::BTreeMap, path::PathBuf};

/// WNODE_FLAG_TRACED_GUID.
const TRACED_GUID: u32 = 0x2_0000;

/// EVENT_TRACE_REAL_TIME_MODE and EVENT_TRACE_SYSTEM_LOGGER_MODE.
const REAL_TIME: u32 = 0x100;
const SYSTEM_LOGGER: u32 = 0x200_0000;

/// Maximum length of a session's name in UTF-16 units.
const MAX_NAME: usize = 1_023;

/// Name of the session that is always a system logger.
const KERNEL_LOGGER: &str = "NT Kernel Logger";

/// EVENT_ENABLE_PROPERTY_STACK_TRACE.
const STACK_TRACE: u32 = 4;

/// Win32 error codes of functions for sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SessionError {
    /// ERROR_INVALID_HANDLE.
    InvalidHandle = 6,
    /// ERROR_BAD_LENGTH.
    BadLength = 24,
    /// ERROR_INVALID_PARAMETER.
    InvalidParameter = 87,
    /// ERROR_BAD_PATHNAME.
    BadPathname = 161,
    /// ERROR_ALREADY_EXISTS.
    AlreadyExists = 183,
    /// ERROR_WMI_INSTANCE_NOT_FOUND.
    NotFound = 4_201,
}

/// The parts of EVENT_TRACE_PROPERTIES that StartTrace looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRequest {
    /// Name of the session.
    pub name: String,
    /// Wnode.BufferSize.
    pub size: usize,
    /// Size of EVENT_TRACE_PROPERTIES.
    pub fixed_size: usize,
    /// Wnode.Flags.
    pub flags: u32,
    /// LogFileMode.
    pub mode: u32,
    /// EnableFlags.
    pub enable_flags: u32,
    /// LoggerNameOffset.
    pub name_offset: usize,
    /// LogFileNameOffset.
    pub file_offset: usize,
    /// The log file, if LogFileNameOffset is not 0.
    pub file: Option<PathBuf>,
}

impl SessionRequest {
    /// Checks sizes and offsets, before anything is read at the offsets.
    ///
    /// # Errors
    /// As StartTrace.
    pub fn check_layout(&self) -> Result<(), SessionError> {
        let length = self.name.encode_utf16().count();
        if self.name.is_empty() || length > MAX_NAME || self.flags & TRACED_GUID == 0 {
            return Err(SessionError::InvalidParameter);
        }
        // StartTrace copies the name to its offset.
        let needed = self.fixed_size + 2 * (length + 1);
        if self.size < needed {
            return Err(SessionError::BadLength);
        }
        let is_inside = |offset: usize| offset >= self.fixed_size && offset < self.size;
        if !is_inside(self.name_offset) || self.file_offset != 0 && !is_inside(self.file_offset) {
            return Err(SessionError::InvalidParameter);
        }
        if self.name_offset + 2 * (length + 1) > self.size {
            return Err(SessionError::BadLength);
        }
        Ok(())
    }

    fn check_modes(&self) -> Result<(), SessionError> {
        let has_file = self.file.as_ref().is_some_and(|file| !file.as_os_str().is_empty());
        if !has_file && self.mode & REAL_TIME == 0 {
            return Err(SessionError::BadPathname);
        }
        // Only system loggers have events of the system provider.
        let is_system = self.mode & SYSTEM_LOGGER != 0 || self.name == KERNEL_LOGGER;
        if self.enable_flags != 0 && !is_system {
            return Err(SessionError::InvalidParameter);
        }
        Ok(())
    }
}

/// What a session wants of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnabledProvider {
    /// Highest level; 0 for every level.
    pub level: u8,
    /// Keywords of which an event has at least one; 0 for every event.
    pub keywords: u64,
    /// Whether its events have stacks.
    pub with_stacks: bool,
}

impl EnabledProvider {
    /// Returns whether an event is wanted.
    #[must_use]
    pub const fn includes(&self, level: u8, keyword: u64) -> bool {
        (self.level == 0 || level <= self.level) && (self.keywords == 0 || self.keywords & keyword != 0)
    }
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Name.
    pub name: String,
    /// LogFileMode.
    pub mode: u32,
    /// EnableFlags.
    pub enable_flags: u32,
    /// The log file.
    pub file: Option<PathBuf>,
    /// The providers that are enabled.
    pub providers: BTreeMap<ProviderId, EnabledProvider>,
}

impl Session {
    /// Returns whether a consumer can receive the events.
    #[must_use]
    pub const fn is_real_time(&self) -> bool {
        self.mode & REAL_TIME != 0
    }

    /// Returns whether events of a provider have stacks.
    #[must_use]
    pub fn has_stacks(&self, provider: &ProviderId) -> bool {
        self.providers.get(provider).is_some_and(|provider| provider.with_stacks)
    }
}

/// The sessions that are running.
#[derive(Debug, Default)]
pub struct Sessions {
    last: u64,
    running: BTreeMap<u64, Session>,
}

impl Sessions {
    /// Creates no sessions.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: 0, running: BTreeMap::new() }
    }

    /// Starts a session and returns its handle.
    ///
    /// # Errors
    /// As StartTrace.
    pub fn start(&mut self, request: SessionRequest) -> Result<u64, SessionError> {
        request.check_layout()?;
        request.check_modes()?;
        if self.running.values().any(|session| session.name.eq_ignore_ascii_case(&request.name)) {
            return Err(SessionError::AlreadyExists);
        }
        let SessionRequest { name, mode, enable_flags, file, .. } = request;
        self.last += 1;
        self.running.insert(self.last, Session { name, mode, enable_flags, file, providers: BTreeMap::new() });
        Ok(self.last)
    }

    /// Returns the handle of a session, which is given by its handle, or by its name if the handle is 0.
    ///
    /// # Errors
    /// As ControlTrace.
    pub fn find(&self, handle: u64, name: Option<&str>) -> Result<u64, SessionError> {
        if handle != 0 {
            return self.running.contains_key(&handle).then_some(handle).ok_or(SessionError::NotFound);
        }
        let name = name.ok_or(SessionError::InvalidParameter)?;
        let found = self.running.iter().find(|(_, session)| session.name.eq_ignore_ascii_case(name));
        found.map(|(handle, _)| *handle).ok_or(SessionError::NotFound)
    }

    /// Returns a session.
    #[must_use]
    pub fn get(&self, handle: u64) -> Option<&Session> {
        self.running.get(&handle)
    }

    /// Enables a provider in a session with `property` of EVENT_ENABLE_PROPERTY, or changes how it is enabled.
    ///
    /// # Errors
    /// As EnableTraceEx2.
    pub fn enable(
        &mut self,
        handle: u64,
        provider: ProviderId,
        level: u8,
        keywords: u64,
        property: u32,
    ) -> Result<(), SessionError> {
        let session = self.session(handle)?;
        let with_stacks = property & STACK_TRACE != 0;
        session.providers.insert(provider, EnabledProvider { level, keywords, with_stacks });
        Ok(())
    }

    /// Disables a provider in a session.
    ///
    /// # Errors
    /// As EnableTraceEx2.
    pub fn disable(&mut self, handle: u64, provider: &ProviderId) -> Result<(), SessionError> {
        self.session(handle)?.providers.remove(provider);
        Ok(())
    }

    /// Stops a session and returns it.
    pub fn stop(&mut self, handle: u64) -> Option<Session> {
        self.running.remove(&handle)
    }

    /// Returns what the sessions together want of a provider, or `None` if none has enabled it.
    #[must_use]
    pub fn wanted(&self, provider: &ProviderId) -> Option<(u8, u64)> {
        let each = self.running.values().filter_map(|session| session.providers.get(provider));
        // 0 selects everything, both as the level and as the keywords.
        let wider = |all: EnabledProvider, one: &EnabledProvider| EnabledProvider {
            level: if all.level == 0 || one.level == 0 { 0 } else { all.level.max(one.level) },
            keywords: if all.keywords == 0 || one.keywords == 0 { 0 } else { all.keywords | one.keywords },
            ..all
        };
        let mut each = each;
        let first = *each.next()?;
        let EnabledProvider { level, keywords, .. } = each.fold(first, wider);
        Some((level, keywords))
    }

    fn session(&mut self, handle: u64) -> Result<&mut Session, SessionError> {
        if handle == 0 {
            return Err(SessionError::InvalidParameter);
        }
        self.running.get_mut(&handle).ok_or(SessionError::InvalidHandle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ProviderId = [7; 16];

    fn request(name: &str) -> SessionRequest {
        SessionRequest {
            name: name.to_owned(),
            size: 1_000,
            fixed_size: 120,
            flags: TRACED_GUID,
            mode: REAL_TIME,
            name_offset: 120,
            ..SessionRequest::default()
        }
    }

    #[test]
    fn properties_are_checked_as_documented() {
        use SessionError::{BadLength, BadPathname, InvalidParameter};
        let start = |request| Sessions::new().start(request);
        let good = request("a");
        assert_eq!(start(good.clone()), Ok(1));
        for (wrong, error) in [
            (request(""), InvalidParameter),
            (SessionRequest { flags: 0, ..good.clone() }, InvalidParameter),
            (SessionRequest { size: 120, ..good.clone() }, BadLength),
            (SessionRequest { size: 123, ..good.clone() }, BadLength),
            (SessionRequest { name_offset: 0, ..good.clone() }, InvalidParameter),
            (SessionRequest { name_offset: 1_000, ..good.clone() }, InvalidParameter),
            (SessionRequest { name_offset: 998, ..good.clone() }, BadLength),
            (SessionRequest { file_offset: 1, ..good.clone() }, InvalidParameter),
            (SessionRequest { mode: 0, ..good.clone() }, BadPathname),
            (SessionRequest { enable_flags: 1, ..good.clone() }, InvalidParameter),
            (request(&"n".repeat(1_024)), InvalidParameter),
        ] {
            assert_eq!(start(wrong.clone()), Err(error), "{wrong:?}");
        }
        let system = REAL_TIME | SYSTEM_LOGGER;
        assert_eq!(start(SessionRequest { enable_flags: 1, mode: system, ..good.clone() }), Ok(1));
        assert_eq!(start(SessionRequest { size: 124, ..good.clone() }), Ok(1));
        assert_eq!(start(SessionRequest { mode: 1, file: Some("x.etl".into()), ..good }), Ok(1));
    }

    #[test]
    fn a_name_is_used_once_and_found_in_any_case() {
        let mut sessions = Sessions::new();
        let handle = sessions.start(request("Name")).unwrap();
        assert_eq!(sessions.start(request("NAME")), Err(SessionError::AlreadyExists));
        assert_eq!(sessions.find(0, Some("name")), Ok(handle));
        assert_eq!(sessions.find(handle, None), Ok(handle));
        assert_eq!(sessions.find(0, None), Err(SessionError::InvalidParameter));
        assert!(sessions.stop(handle).is_some());
        assert_eq!(sessions.find(handle, None), Err(SessionError::NotFound));
        assert_eq!(sessions.find(0, Some("name")), Err(SessionError::NotFound));
        assert_ne!(sessions.start(request("NAME")), Ok(handle));
    }

    #[test]
    fn a_provider_is_enabled_as_long_as_a_session_wants_it() {
        let mut sessions = Sessions::new();
        let [first, second] = ["a", "b"].map(|name| sessions.start(request(name)).unwrap());
        assert_eq!(sessions.wanted(&ID), None);
        sessions.enable(first, ID, 4, 1, STACK_TRACE).unwrap();
        sessions.enable(second, ID, 2, 4, 0).unwrap();
        assert_eq!(sessions.wanted(&ID), Some((4, 5)));
        assert!(sessions.get(first).unwrap().has_stacks(&ID) && !sessions.get(second).unwrap().has_stacks(&ID));
        sessions.enable(second, ID, 0, 0, 0).unwrap();
        assert_eq!(sessions.wanted(&ID), Some((0, 0)));
        sessions.disable(second, &ID).unwrap();
        assert_eq!(sessions.wanted(&ID), Some((4, 1)));
        sessions.stop(first);
        assert_eq!(sessions.wanted(&ID), None);
        assert_eq!(sessions.enable(0, ID, 0, 0, 0), Err(SessionError::InvalidParameter));
        assert_eq!(sessions.enable(first, ID, 0, 0, 0), Err(SessionError::InvalidHandle));
    }
}
