//! What a step of the run is. `steps` has the steps themselves.

use std::time::Duration;

use super::{
    facts::{self, Facts, Need},
    guest::{Call, HostAction, OUTPUT, ROOT, Ran},
    proof::{self, Outcome},
};

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Acts on the virtual machine from the host.
    Host(HostAction),
    /// Copies the payload into the guest.
    Copy,
    /// Restarts the guest, and waits until it answers.
    Restart,
    /// Runs the package's client.
    Client(Vec<String>),
    /// Runs another program.
    Program(Call),
}

/// The state of the driver that a step begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriverState {
    /// Any.
    Any,
    /// It is installed and runs.
    Running,
    /// It is not installed.
    Absent,
}

/// One step of the run.
pub struct Step {
    /// Its name, by which the state of a run knows it.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// How long it may take.
    pub limit: Duration,
    /// What the result means.
    pub proof: fn(&Ran) -> Outcome,
    /// What it shows if it passes.
    pub shows: &'static str,
    /// Identifiers of the claims that it decides.
    pub decides: Vec<&'static str>,
    /// What it needs of the guest.
    pub needs: Vec<Need>,
    /// Names of steps without which it shows nothing: they must have passed.
    pub after: Vec<String>,
    /// The state of the driver that it begins with.
    pub driver: DriverState,
    /// What the run learns from its output.
    pub learn: fn(&Ran, &mut Facts),
}

/// A test that compares the modules of the tests with the files of the repository.
const NEEDS_REPOSITORY: &str = "skipped::every_module_that_needs_the_lab_is_skipped_on_windows";

impl Step {
    fn new(name: impl Into<String>, action: Action, driver: DriverState) -> Self {
        Self {
            name: name.into(),
            action,
            limit: Duration::from_mins(3),
            proof: proof::done,
            shows: "it exits with 0",
            decides: Vec::new(),
            needs: Vec::new(),
            after: Vec::new(),
            driver,
            learn: facts::nothing,
        }
    }

    /// Returns a step of the host.
    pub fn host(name: &str, action: HostAction) -> Self {
        Self::new(name, Action::Host(action), DriverState::Any)
    }

    /// Returns the step that copies the payload.
    pub fn copy(name: &str) -> Self {
        Self::new(name, Action::Copy, DriverState::Any)
    }

    /// Returns a restart of the guest.
    pub fn restart(name: impl Into<String>) -> Self {
        Self::new(name, Action::Restart, DriverState::Any)
    }

    /// Returns a step that runs the client, with the driver in any state.
    pub fn bare_client(name: impl Into<String>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self::new(name, Action::Client(arguments), DriverState::Any)
    }

    /// Returns a step that runs the client, with the driver running.
    pub fn client(name: impl Into<String>, arguments: &[&str]) -> Self {
        Self::bare_client(name, arguments).running().needs(&[Need::TestSigning])
    }

    /// Returns a step that runs a program.
    pub fn program(name: impl Into<String>, program: &str, arguments: &[&str]) -> Self {
        Self::new(name, Action::Program(Call::new(program, arguments)), DriverState::Any)
    }

    /// Returns a step that runs a line of PowerShell.
    pub fn powershell(name: &str, line: &str) -> Self {
        Self::new(name, Action::Program(Call::powershell(line)), DriverState::Any)
    }

    /// Returns a step that runs the end-to-end tests whose names contain `filter`.
    pub fn tests(name: impl Into<String>, filter: &str, shows: &'static str) -> Self {
        let below = |folder: &str| format!("{ROOT}\\{folder}");
        let arguments = [filter, "--test-threads=1", "--show-output", "--skip", NEEDS_REPOSITORY];
        let mut call = Call::new(&below(r"tests\end_to_end.exe"), &arguments);
        let folders = [("PACKAGE", "package"), ("SCHEMAS", "schemas")];
        call.environment = folders.map(|(name, folder)| (format!("HALPROF_{name}"), below(folder))).into();
        Self::new(name, Action::Program(call), DriverState::Absent)
            .proof(proof::tests, shows)
            .needs(&[Need::TestSigning, Need::Tests])
            .minutes(30)
    }

    /// Sets what the result means, and what it shows.
    pub fn proof(self, proof: fn(&Ran) -> Outcome, shows: &'static str) -> Self {
        Self { proof, shows, ..self }
    }

    /// Adds claims that the step decides.
    pub fn decides(mut self, claims: &[&'static str]) -> Self {
        self.decides.extend(claims);
        self
    }

    /// Adds what the step needs.
    pub fn needs(mut self, needs: &[Need]) -> Self {
        let new = needs.iter().filter(|need| !self.needs.contains(need)).copied().collect::<Vec<_>>();
        self.needs.extend(new);
        self
    }

    /// Adds a step without which this one shows nothing.
    pub fn after(mut self, step: impl Into<String>) -> Self {
        self.after.push(step.into());
        self
    }

    /// Sets what the run learns.
    pub fn learn(self, learn: fn(&Ran, &mut Facts)) -> Self {
        Self { learn, ..self }
    }

    /// Sets the time limit.
    pub fn minutes(self, minutes: u64) -> Self {
        Self { limit: Duration::from_mins(minutes), ..self }
    }

    /// Makes the step begin with a running driver.
    pub fn running(self) -> Self {
        Self { driver: DriverState::Running, ..self }
    }

    /// Makes the step begin without an installed driver.
    pub fn absent(self) -> Self {
        Self { driver: DriverState::Absent, ..self }
    }

    /// Returns the call of the step in the guest, if it has one.
    pub fn call(&self) -> Option<Call> {
        match &self.action {
            Action::Host(_) | Action::Copy | Action::Restart => None,
            Action::Client(arguments) => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                Some(client(&arguments))
            }
            Action::Program(call) => Some(call.clone()),
        }
    }

    /// Returns the command of the step, to read.
    pub fn command(&self) -> String {
        match &self.action {
            Action::Host(action) => format!("on the host: {}", action.name()),
            Action::Copy => format!("copy the package and the tests to {ROOT}"),
            Action::Restart => "restart the guest".to_owned(),
            Action::Client(_) | Action::Program(_) => self.call().map(|call| call.line()).unwrap_or_default(),
        }
    }
}

/// Returns the call of the package's client.
pub fn client(arguments: &[&str]) -> Call {
    Call { folder: OUTPUT, ..Call::new(&format!("{ROOT}\\package\\client.exe"), arguments) }
}
