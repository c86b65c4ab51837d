//! What the agent sends and serves. Tests that count the memory of their process are programs of their own. One program, because each is linked anew.

mod endpoint;
mod otlp;
mod push;
mod scrape;
