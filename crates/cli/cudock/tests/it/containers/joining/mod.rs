//! Processes that join a container, or come close to one, as a hostile program in it sees them.

mod execs;
mod groups;
mod hooks;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::machine::{Machine, machine, run_arguments};
use super::rootless::Visitor;
use crate::join_trace::{Secrets, Spy, compile};
use crate::support::{code, schema, shown};

/// A machine with a spy in its root, and the user whose containers are attacked.
struct Scene {
    user: User,
    secrets: Secrets,
}

enum User {
    Root(Machine),
    Visitor(Visitor),
}

impl Scene {
    /// Containers of root.
    fn of_root() -> Option<Self> {
        Self::new(User::Root(machine()?))
    }

    /// Containers of a user without rights.
    fn of_user() -> Option<Self> {
        Self::new(User::Visitor(Visitor::new(true)?))
    }

    fn new(user: User) -> Option<Self> {
        let machine = user.machine();
        fs::set_permissions(machine.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let secrets = Secrets::new(machine.path());
        compile(&machine.root().join("bin/spy")).then_some(Self { user, secrets })
    }

    fn machine(&self) -> &Machine {
        self.user.machine()
    }

    /// A command of the user, with a secret in its environment.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match &self.user {
            User::Root(machine) => machine.command(arguments),
            User::Visitor(visitor) => visitor.command(arguments),
        };
        command.env("SECRET_OF_THE_CALLER", &self.secrets.variable);
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        schema::output(&mut self.command(arguments))
    }

    fn good(&self, arguments: &[&str]) {
        let output = self.output(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", shown(&output));
    }

    /// Starts a container `spy` with a spy, in a directory that the container has at `/watch`.
    fn start_spy(&self, added: &str) -> Spy {
        let dir = self.machine().path().join(format!("watch{added}"));
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        let mut secrets = self.secrets.clone();
        let label = format!("owner={}", secrets.add());
        secrets.write_to(&dir);
        let volume = format!("{}:/watch", dir.display());
        let mut options = vec!["-d", "--name", "spy", "--label", &label, "--volume", &volume];
        if !added.is_empty() {
            options.extend(["--cap-add", added]);
        }
        self.good(&run_arguments(&options, &["spy", "/watch"]));
        Spy::connect(&dir)
    }
}

impl User {
    fn machine(&self) -> &Machine {
        match self {
            Self::Root(machine) => machine,
            Self::Visitor(visitor) => visitor.machine(),
        }
    }
}
