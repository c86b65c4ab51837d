//! What is in order in a configuration, and probably not meant.

use agent::config::Config;
use counts::event_list::EventList;
use counts::{cpuid, known_event};
use events::import::Imported;

/// Returns a sentence for each. The service can run on another processor than this one.
pub fn of(config: &Config, events: &[EventList], imported: Option<&Imported>) -> Vec<String> {
    let processor = cpuid::this_processor();
    let refused = |event| known_event::encode(event, &processor, imported).err();
    let refusals = events.iter().flatten().filter_map(|member| refused(&member.event));
    let mut found: Vec<String> = refusals.map(|refusal| format!("for this processor, {refusal}")).collect();
    if config.prometheus.is_none() && config.otlp.is_none() {
        found.push("nothing receives the counts: add [prometheus] or [otlp]".to_owned());
    }
    if let Some(prometheus) = &config.prometheus
        && !prometheus.listen.ip().is_loopback()
        && prometheus.users.is_empty()
    {
        let listen = prometheus.listen;
        found.push(format!("[prometheus] lets everybody who reaches {listen} read: add users, or listen on 127.0.0.1"));
    }
    found
}
