//! What the engine does with the model of a machine. The tests are one program, because each program compiles the
//! engine for the model anew. Those that count the memory of their process are programs of their own.

mod checklist_engine;
mod clock;
mod disturbed;
mod every_identity;
mod every_name;
mod extra;
mod first_access;
mod flops;
mod group;
mod hidden;
mod hybrid;
mod hypervisors;
mod ibs;
mod last_branches;
mod machine;
mod metrics;
mod movement;
mod multiplexing;
mod narrowing;
mod northbridge;
mod other_thread;
mod raw;
mod recorded;
mod registers;
mod requests;
mod sampling;
mod sessions;
mod threads;
mod yielding;
