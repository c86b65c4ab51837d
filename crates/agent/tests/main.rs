//! What the agent sends and serves. One program, because each is linked anew; tests that count the memory of their
//! process are programs of their own.

mod endpoint;
mod otlp;
mod push;
mod scrape;
