//! The client side of the connection, for tests.

use crate::{
    Accesses, Answer, Areas, CancelMoment, Command, DebugStore, Descriptor, Enabled, Handler, Happened, InterruptMode,
    LedgerEntry, Place, Pool, Shadow, Stored, Ticks, Time, Violation, Visited,
};
use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Time limit for an answer, longer than any wait inside the lab.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// A connection to the lab.
#[derive(Debug)]
pub struct Client {
    lab: BufReader<TcpStream>,
}

macro_rules! ask {
    ($self:ident, $command:expr, $answer:pat => $result:expr) => {
        match $self.ask(&$command)? {
            $answer => Ok($result),
            other => Err(Error::Unexpected(Box::new(other))),
        }
    };
}

impl Client {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// The connection cannot be established.
    pub fn connect(port: u16) -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { lab: BufReader::new(stream) })
    }

    /// Connects to the lab that writes its port to this file. Waits for it for at most `patience`.
    ///
    /// # Errors
    /// The lab cannot be reached within that time.
    pub fn find(port_file: &Path, patience: Duration) -> Result<Self, Error> {
        let deadline = Instant::now() + patience;
        loop {
            let port = std::fs::read_to_string(port_file)
                .and_then(|text| text.trim().parse().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)));
            match port.map_err(Error::Io).and_then(Self::connect) {
                Err(_) if Instant::now() < deadline => thread::sleep(POLL),
                result => return result,
            }
        }
    }

    /// Sends a command and returns the answer. A refusal is an error.
    ///
    /// # Errors
    /// The lab refuses the command, cannot be reached, or sends an invalid line.
    pub fn ask(&mut self, command: &Command) -> Result<Answer, Error> {
        let mut line = serde_json::to_string(command)?;
        line.push('\n');
        self.lab.get_mut().write_all(line.as_bytes())?;
        line.clear();
        if self.lab.read_line(&mut line)? == 0 {
            return Err(Error::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        match serde_json::from_str(&line)? {
            Answer::Refused(why) => Err(Error::Refused(why)),
            answer => Ok(answer),
        }
    }

    /// [`Command::Identities`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask), as for all methods below.
    pub fn identities(&mut self) -> Result<Vec<String>, Error> {
        ask!(self, Command::Identities, Answer::Names(names) => names)
    }

    /// [`Command::SetIdentity`].
    ///
    /// # Errors
    /// Also if a driver is loaded, or the identity does not exist.
    pub fn set_identity(&mut self, name: &str) -> Result<(), Error> {
        ask!(self, Command::SetIdentity(name.to_owned()), Answer::Done => ())
    }

    /// [`Command::SetProcessors`].
    ///
    /// # Errors
    /// Also if a driver is loaded, or the lab does not support the numbers.
    pub fn set_processors(&mut self, active: u32, maximum: u32) -> Result<(), Error> {
        ask!(self, Command::SetProcessors { active, maximum }, Answer::Done => ())
    }

    /// [`Command::AddProcessor`].
    ///
    /// # Errors
    /// Also if the maximum number of processors is active.
    pub fn add_processor(&mut self) -> Result<bool, Error> {
        ask!(self, Command::AddProcessor, Answer::Added(added) => added)
    }

    /// [`Command::SetApic`].
    ///
    /// # Errors
    /// Also if a driver is loaded.
    pub fn set_apic(&mut self, x2apic: bool) -> Result<(), Error> {
        ask!(self, Command::SetApic { x2apic }, Answer::Done => ())
    }

    /// [`Command::SetLvt`].
    ///
    /// # Errors
    /// Also if there is no such processor.
    pub fn set_lvt(&mut self, processor: u32, value: u32) -> Result<(), Error> {
        ask!(self, Command::SetLvt { processor, value }, Answer::Done => ())
    }

    /// [`Command::Lvt`].
    ///
    /// # Errors
    /// Also if there is no such processor.
    pub fn lvt(&mut self, processor: u32) -> Result<u32, Error> {
        ask!(self, Command::Lvt { processor }, Answer::Lvt(value) => value)
    }

    /// [`Command::HalUnmasks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hal_unmasks(&mut self, unmasks: bool) -> Result<(), Error> {
        ask!(self, Command::HalUnmasks(unmasks), Answer::Done => ())
    }

    /// [`Command::SetInterruptMode`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_interrupt_mode(&mut self, mode: InterruptMode) -> Result<(), Error> {
        ask!(self, Command::SetInterruptMode(mode), Answer::Done => ())
    }

    /// [`Command::SetFaulting`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_faulting(&mut self, registers: &[u32]) -> Result<(), Error> {
        ask!(self, Command::SetFaulting { registers: registers.to_vec() }, Answer::Done => ())
    }

    /// [`Command::WriteMsr`].
    ///
    /// # Errors
    /// Also if there is no such processor, or the access faults.
    pub fn write_msr(&mut self, processor: u32, register: u32, value: u64) -> Result<(), Error> {
        ask!(self, Command::WriteMsr { processor, register, value }, Answer::Done => ())
    }

    /// [`Command::ReadMsr`].
    ///
    /// # Errors
    /// Also if there is no such processor, or the access faults.
    pub fn read_msr(&mut self, processor: u32, register: u32) -> Result<u64, Error> {
        ask!(self, Command::ReadMsr { processor, register }, Answer::Msr(value) => value)
    }

    /// [`Command::SetWindows`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_windows(&mut self, build: u32) -> Result<(), Error> {
        ask!(self, Command::SetWindows { build }, Answer::Done => ())
    }

    /// [`Command::SetShadow`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_shadow(&mut self, shadow: Shadow) -> Result<(), Error> {
        ask!(self, Command::SetShadow(shadow), Answer::Done => ())
    }

    /// [`Command::SetControlAreas`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_control_areas(&mut self, areas: Areas) -> Result<(), Error> {
        ask!(self, Command::SetControlAreas(areas), Answer::Done => ())
    }

    /// [`Command::OccupyControlArea`].
    ///
    /// # Errors
    /// Also if there is no such processor, or its area is allocated.
    pub fn occupy_control_area(&mut self, processor: u32) -> Result<(), Error> {
        ask!(self, Command::OccupyControlArea { processor }, Answer::Done => ())
    }

    /// [`Command::ControlAreas`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn control_areas(&mut self) -> Result<Vec<Option<u64>>, Error> {
        ask!(self, Command::ControlAreas, Answer::ControlAreas(areas) => areas)
    }

    /// [`Command::SetDebugStore`].
    ///
    /// # Errors
    /// Also if there is no such processor, or the access faults.
    pub fn set_debug_store(
        &mut self,
        processor: u32,
        area: u64,
        debugctl: u64,
        misc_enable: Option<u64>,
    ) -> Result<(), Error> {
        ask!(self, Command::SetDebugStore { processor, area, debugctl, misc_enable }, Answer::Done => ())
    }

    /// [`Command::DebugStore`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn debug_store(&mut self) -> Result<Vec<DebugStore>, Error> {
        ask!(self, Command::DebugStore, Answer::DebugStore(registers) => registers)
    }

    /// [`Command::Branch`].
    ///
    /// # Errors
    /// Also if the time is live, there is no such processor, or it stays at HIGH_LEVEL.
    pub fn branch(&mut self, processor: u32, user: bool, from: u64, step: u64, count: u64) -> Result<(), Error> {
        ask!(self, Command::Branch { processor, user, from, step, count }, Answer::Done => ())
    }

    /// [`Command::Stored`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn stored(&mut self) -> Result<Vec<Stored>, Error> {
        ask!(self, Command::Stored, Answer::Stored(stored) => stored)
    }

    /// [`Command::Sleep`].
    ///
    /// # Errors
    /// Also if the machine sleeps.
    pub fn sleep(&mut self) -> Result<(), Error> {
        ask!(self, Command::Sleep, Answer::Done => ())
    }

    /// [`Command::Wake`].
    ///
    /// # Errors
    /// Also if the machine does not sleep.
    pub fn wake(&mut self, milliseconds: u64) -> Result<(), Error> {
        ask!(self, Command::Wake { milliseconds }, Answer::Done => ())
    }

    /// [`Command::Advance`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn advance(&mut self, milliseconds: u64) -> Result<(), Error> {
        ask!(self, Command::Advance { milliseconds }, Answer::Done => ())
    }

    /// [`Command::HoldCounter`].
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn hold_counter(&mut self, hold: bool) -> Result<(), Error> {
        ask!(self, Command::HoldCounter(hold), Answer::Done => ())
    }

    /// [`Command::NotifyPower`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn notify_power(&mut self, first: u64, second: u64) -> Result<(), Error> {
        ask!(self, Command::NotifyPower { first, second }, Answer::Done => ())
    }

    /// [`Command::SetTime`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn set_time(&mut self, time: Time) -> Result<(), Error> {
        ask!(self, Command::SetTime(time), Answer::Done => ())
    }

    /// [`Command::Run`].
    ///
    /// # Errors
    /// Also if the time is live, there is no such processor, or it stays at HIGH_LEVEL.
    pub fn run(&mut self, processor: u32, user: &[Happened], kernel: &[Happened]) -> Result<(), Error> {
        ask!(self, Command::Run { processor, user: user.to_vec(), kernel: kernel.to_vec() }, Answer::Done => ())
    }

    /// [`Command::Tick`].
    ///
    /// # Errors
    /// Also if the time is live, there is no such processor, or the routines do not end.
    pub fn tick(&mut self, processor: u32, times: u64) -> Result<(), Error> {
        ask!(self, Command::Tick { processor, times }, Answer::Done => ())
    }

    /// [`Command::Ticks`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn ticks(&mut self) -> Result<Ticks, Error> {
        ask!(self, Command::Ticks, Answer::Ticks(ticks) => ticks)
    }

    /// [`Command::Skipped`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn skipped(&mut self) -> Result<Vec<u64>, Error> {
        ask!(self, Command::Skipped, Answer::Skipped(skipped) => skipped)
    }

    /// [`Command::SetScene`].
    ///
    /// # Errors
    /// Also if no place has a weight, or there is no such processor.
    pub fn set_scene(&mut self, processor: u32, places: &[Place]) -> Result<(), Error> {
        ask!(self, Command::SetScene { processor, places: places.to_vec() }, Answer::Done => ())
    }

    /// [`Command::Scene`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn scene(&mut self) -> Result<Vec<Vec<Visited>>, Error> {
        ask!(self, Command::Scene, Answer::Scene(scene) => scene)
    }

    /// [`Command::Ledger`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn ledger(&mut self) -> Result<Vec<Vec<LedgerEntry>>, Error> {
        ask!(self, Command::Ledger, Answer::Ledger(ledger) => ledger)
    }

    /// [`Command::ClearLedger`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn clear_ledger(&mut self) -> Result<(), Error> {
        ask!(self, Command::ClearLedger, Answer::Done => ())
    }

    /// [`Command::Enabled`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn enabled(&mut self) -> Result<Vec<Vec<Enabled>>, Error> {
        ask!(self, Command::Enabled, Answer::Enabled(enabled) => enabled)
    }

    /// [`Command::Accesses`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn accesses(&mut self) -> Result<Vec<Accesses>, Error> {
        ask!(self, Command::Accesses, Answer::Accesses(accesses) => accesses)
    }

    /// [`Command::Violations`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn violations(&mut self) -> Result<Vec<Violation>, Error> {
        ask!(self, Command::Violations, Answer::Violations(violations) => violations)
    }

    /// [`Command::Pool`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn pool(&mut self) -> Result<Pool, Error> {
        ask!(self, Command::Pool, Answer::Pool(pool) => pool)
    }

    /// [`Command::DenyPrivilege`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn deny_privilege(&mut self, deny: bool) -> Result<(), Error> {
        ask!(self, Command::DenyPrivilege(deny), Answer::Done => ())
    }

    /// [`Command::FailAllocation`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn fail_allocation(&mut self, nth: Option<u64>) -> Result<(), Error> {
        ask!(self, Command::FailAllocation(nth), Answer::Done => ())
    }

    /// [`Command::FailCall`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn fail_call(&mut self, nth: Option<u64>) -> Result<(), Error> {
        ask!(self, Command::FailCall(nth), Answer::Done => ())
    }

    /// [`Command::FailedCall`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn failed_call(&mut self) -> Result<Option<String>, Error> {
        ask!(self, Command::FailedCall, Answer::FailedCall(function) => function)
    }

    /// [`Command::RefuseCounters`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn refuse_counters(&mut self, status: Option<u32>) -> Result<(), Error> {
        ask!(self, Command::RefuseCounters(status), Answer::Done => ())
    }

    /// [`Command::Reserved`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn reserved(&mut self) -> Result<bool, Error> {
        ask!(self, Command::Reserved, Answer::Reserved(reserved) => reserved)
    }

    /// [`Command::Waiting`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn waiting(&mut self) -> Result<usize, Error> {
        ask!(self, Command::Waiting, Answer::Waiting(requests) => requests)
    }

    /// [`Command::Threads`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn threads(&mut self) -> Result<usize, Error> {
        ask!(self, Command::Threads, Answer::Threads(threads) => threads)
    }

    /// [`Command::CancelAt`].
    ///
    /// # Errors
    /// Also if there is only one processor.
    pub fn cancel_at(&mut self, moment: Option<CancelMoment>) -> Result<(), Error> {
        ask!(self, Command::CancelAt(moment), Answer::Done => ())
    }

    /// [`Command::HideFrames`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn hide_frames(&mut self, hide: bool) -> Result<(), Error> {
        ask!(self, Command::HideFrames(hide), Answer::Done => ())
    }

    /// [`Command::RefuseHandler`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn refuse_handler(&mut self, refuse: bool) -> Result<(), Error> {
        ask!(self, Command::RefuseHandler(refuse), Answer::Done => ())
    }

    /// [`Command::Handler`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn handler(&mut self) -> Result<Handler, Error> {
        ask!(self, Command::Handler, Answer::Handler(handler) => handler)
    }

    /// [`Command::Descriptor`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn descriptor(&mut self) -> Result<Option<Descriptor>, Error> {
        ask!(self, Command::Descriptor, Answer::Descriptor(descriptor) => descriptor)
    }

    /// [`Command::Images`].
    ///
    /// # Errors
    /// See [`ask`](Self::ask).
    pub fn images(&mut self) -> Result<Vec<String>, Error> {
        ask!(self, Command::Images, Answer::Names(names) => names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counter, Instruction};
    use std::net::TcpListener;

    /// Starts a server that sends one of the answers for each line and then closes the connection. Returns its port,
    /// and the commands when joined.
    fn lab(answers: Vec<Answer>) -> (u16, thread::JoinHandle<Vec<Command>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut commands = Vec::new();
            for answer in answers {
                commands.push(serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap());
                writeln!(stream, "{}", serde_json::to_string(&answer).unwrap()).unwrap();
            }
            commands
        });
        (port, served)
    }

    #[test]
    fn commands_and_answers_arrive_unchanged() {
        let entry = LedgerEntry {
            counter: Counter::Fixed(2),
            event: 0xFFF,
            umask: 0xFF,
            user: true,
            kernel: false,
            counted: u64::MAX,
            overflows: 1,
            interrupts: 0,
        };
        let violation = Violation::GeneralProtection {
            processor: 1,
            instruction: Instruction::Wrmsr,
            register: 0xC001_0200,
            value: Some(u64::MAX),
        };
        let records = vec![(Counter::General(0), 7), (Counter::Fixed(3), u64::MAX)];
        let stored = Stored { branches: 1, branches_refused: 2, records, records_refused: 3, faults: 4 };
        let (port, served) = lab(vec![
            Answer::Done,
            Answer::Ledger(vec![vec![], vec![entry]]),
            Answer::Violations(vec![violation.clone()]),
            Answer::Refused("busy".to_owned()),
            Answer::Ticks(Ticks { ran: vec![0, u64::MAX], set: 1 }),
            Answer::Stored(vec![stored.clone()]),
            Answer::ControlAreas(vec![None, Some(u64::MAX)]),
            Answer::DebugStore(vec![DebugStore { area: u64::MAX, debugctl: 0x1C0, pebs_enable: 1 << 32 }]),
            Answer::Done,
            Answer::Done,
        ]);
        let mut client = Client::connect(port).unwrap();
        client.run(1, &[(0xC0, 0, 7)], &[]).unwrap();
        assert_eq!(client.ledger().unwrap(), [vec![], vec![entry]]);
        assert_eq!(client.violations().unwrap(), [violation]);
        assert!(matches!(client.set_identity("x"), Err(Error::Refused(why)) if why == "busy"));
        assert_eq!(client.ticks().unwrap(), Ticks { ran: vec![0, u64::MAX], set: 1 });
        assert_eq!(client.stored().unwrap(), [stored]);
        assert_eq!(client.control_areas().unwrap(), [None, Some(u64::MAX)]);
        let registers = DebugStore { area: u64::MAX, debugctl: 0x1C0, pebs_enable: 1 << 32 };
        assert_eq!(client.debug_store().unwrap(), [registers]);
        client.set_shadow(Shadow::Untold(0xC000_0003)).unwrap();
        assert!(matches!(client.pool(), Err(Error::Unexpected(answer)) if *answer == Answer::Done));
        assert!(matches!(client.pool(), Err(Error::Io(_))));
        let run = Command::Run { processor: 1, user: vec![(0xC0, 0, 7)], kernel: vec![] };
        let refused = Command::SetIdentity("x".to_owned());
        let shadow = Command::SetShadow(Shadow::Untold(0xC000_0003));
        let asked = [run, Command::Ledger, Command::Violations, refused, Command::Ticks];
        let more = [Command::Stored, Command::ControlAreas, Command::DebugStore, shadow, Command::Pool];
        assert_eq!(served.join().unwrap(), [&asked[..], &more].concat());
    }

    #[test]
    fn a_violation_is_described_in_words() {
        let read = Violation::GeneralProtection {
            processor: 0,
            instruction: Instruction::Rdmsr,
            register: 0x38F,
            value: None,
        };
        assert_eq!(read.to_string(), "Rdmsr of 0x38f on processor 0 faults");
        let level = Violation::Level { function: "ZwClose".to_owned(), level: 2, allowed: 0 };
        assert_eq!(level.to_string(), "ZwClose called at IRQL 2, allowed up to 0");
    }

    #[test]
    fn find_fails_after_the_time_limit_without_a_lab() {
        let nowhere = std::env::temp_dir().join("no such folder").join("port");
        assert!(matches!(Client::find(&nowhere, Duration::from_millis(50)), Err(Error::Io(_))));
    }
}
