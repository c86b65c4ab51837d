//! What is in order in a configuration, and probably not meant.

use agent::config::Config;

/// Returns a sentence for each.
pub fn of(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
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
