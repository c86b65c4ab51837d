//! The client side of the connection, for tests. The commands are methods, by area, in the modules.

mod drivers;
mod events;
mod processors;
mod stepping;
mod threads;
mod tracing;
mod windows;

use crate::{Answer, Command};
use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Time limit for an answer, longer than any wait inside the lab.
const WAIT_LIMIT: Duration = Duration::from_mins(2);

/// Interval between attempts to connect.
const POLL: Duration = Duration::from_millis(20);

/// The reason why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The connection failed.
    #[error("the lab cannot be reached: {0}")]
    Io(#[from] io::Error),
    /// The answer is not valid JSON of the protocol.
    #[error("the lab sent an invalid line: {0}")]
    Json(#[from] serde_json::Error),
    /// The lab refused the command.
    #[error("the lab refused the command: {0}")]
    Refused(String),
    /// The answer belongs to another command.
    #[error("unexpected answer: {0:?}")]
    Unexpected(Box<Answer>),
}

/// Sends a command. Returns the result if the answer matches the pattern, or an error.
macro_rules! ask {
    ($self:ident, $command:expr, $answer:pat => $result:expr) => {
        match $self.ask(&$command)? {
            $answer => Ok($result),
            other => Err(Error::Unexpected(Box::new(other))),
        }
    };
}
pub(crate) use ask;

/// A connection to the lab.
#[derive(Debug)]
pub struct Client {
    lab: BufReader<TcpStream>,
    /// Called with each command and its answer, as they are sent.
    observer: Option<fn(&str, &str)>,
}

impl Client {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The connection cannot be established.
    pub fn connect(port: u16) -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, WAIT_LIMIT)?;
        stream.set_read_timeout(Some(WAIT_LIMIT))?;
        stream.set_write_timeout(Some(WAIT_LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { lab: BufReader::new(stream), observer: None })
    }

    /// Connects to the lab that writes its port to this file. Waits for it for at most `limit`.
    ///
    /// # Errors
    /// The lab cannot be reached within that time.
    pub fn find(port_file: &Path, limit: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + limit;
        loop {
            let port = std::fs::read_to_string(port_file)
                .and_then(|text| text.trim().parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)));
            match port.map_err(Error::Io).and_then(Self::connect) {
                Err(_) if Instant::now() < deadline => thread::sleep(POLL),
                result => return result,
            }
        }
    }

    /// Lets a function see each command and its answer, as they are sent.
    #[must_use]
    pub fn observed_by(self, observer: fn(&str, &str)) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Sends a command and returns the answer. A refusal is an error.
    ///
    /// # Errors
    /// The lab refuses the command, cannot be reached, or sends an invalid line.
    pub fn ask(&mut self, command: &Command) -> Result<Answer, Error> {
        let mut command = serde_json::to_string(command)?;
        command.push('\n');
        let mut line = String::new();
        let asked = self.lab.get_mut().write_all(command.as_bytes()).and_then(|()| self.lab.read_line(&mut line));
        if let Some(observer) = self.observer {
            observer(&command, &line);
        }
        if asked? == 0 {
            return Err(Error::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_str(&line)? {
            Answer::Refused(why) => Err(Error::Refused(why)),
            answer => Ok(answer),
        }
    }
}
