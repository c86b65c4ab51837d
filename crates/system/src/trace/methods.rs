//! Functions that .NET compiled: the events MethodLoadVerbose of Microsoft-Windows-DotNETRuntime, and
//! MethodDCStartVerbose of its rundown provider, which have the same ID and payload.

use recording::Method;

use super::payload::Payload;
use super::raw::RawTraceEvent;

/// ID of both events.
const LOADED: u16 = 143;

/// A function that .NET compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedMethod {
    /// Process ID.
    pub process: u32,
    /// The function.
    pub method: Method,
}

/// Parses an event of .NET. Returns `None` for other events.
pub fn parse(event: &RawTraceEvent) -> Option<TracedMethod> {
    if event.id != LOADED {
        return None;
    }
    let mut payload = Payload(event.payload);
    payload.skip(16)?; // MethodID, ModuleID
    let address = payload.u64()?;
    let size = u64::from(payload.u32()?);
    payload.skip(8)?; // MethodToken, MethodFlags
    let [namespace, name, signature] = [(); 3].map(|()| payload.utf16());
    // The signature begins with the result: `instance void  (int32,class System.String)`.
    let parameters = signature.find('(').and_then(|place| signature.get(place..)).unwrap_or_default();
    let dot = if namespace.is_empty() { "" } else { "." };
    let name = format!("{namespace}{dot}{name}{parameters}");
    let method = Method { address, size, name, loaded: event.time };
    (address != 0 && size != 0).then_some(TracedMethod { process: event.process, method })
}

#[cfg(test)]
mod tests {
    use fake_system::payloads::method as payload;

    use super::*;

    #[test]
    fn a_method_has_its_namespace_name_and_parameters() {
        let name = |texts| {
            let bytes = payload(0x7FF8_1000, 0x40, texts);
            let event = RawTraceEvent { id: LOADED, process: 12, time: 77, payload: &bytes, ..RawTraceEvent::EMPTY };
            let TracedMethod { process, method } = parse(&event)?;
            assert_eq!((process, method.address, method.size, method.loaded), (12, 0x7FF8_1000, 0x40, 77));
            Some(method.name)
        };
        let whole = ["App.Program", "Main", "void  (class System.String[])"];
        assert_eq!(name(whole).as_deref(), Some("App.Program.Main(class System.String[])"));
        assert_eq!(name(["", "dynamicClass", ""]).as_deref(), Some("dynamicClass"));
    }

    #[test]
    fn other_events_and_partial_ones_are_not_methods() {
        let bytes = payload(0x1000, 1, ["a", "b", "c"]);
        let event = RawTraceEvent { id: LOADED, payload: &bytes, ..RawTraceEvent::EMPTY };
        assert!(parse(&event).is_some());
        assert_eq!(parse(&RawTraceEvent { id: 144, ..event }), None);
        assert_eq!(parse(&RawTraceEvent { payload: &bytes[..30], ..event }), None);
        let empty = payload(0x1000, 0, ["a", "b", "c"]);
        assert_eq!(parse(&RawTraceEvent { payload: &empty, ..event }), None);
    }
}
