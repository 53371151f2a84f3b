//! A profile: rules about named system calls, before it is known for which machine and which capabilities.

use super::abi::Abi;
use crate::Capability;

/// What becomes of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It is made.
    Allow,
    /// It is made, and the kernel's log says so.
    Log,
    /// It is not made; the caller gets this error number.
    Errno(u16),
    /// It is not made; the caller gets SIGSYS.
    Trap,
    /// A tracer is asked, which gets this number; without one the caller gets ENOSYS.
    Trace(u16),
    /// The calling thread ends.
    KillThread,
    /// The whole process ends.
    KillProcess,
}

impl Action {
    /// The value the filter returns to the kernel.
    pub const fn return_value(self) -> u32 {
        match self {
            Self::KillProcess => 0x8000_0000,
            Self::KillThread => 0,
            Self::Trap => 0x0003_0000,
            Self::Errno(number) => 0x0005_0000 | number as u32,
            Self::Trace(number) => 0x7ff0_0000 | number as u32,
            Self::Log => 0x7ffc_0000,
            Self::Allow => 0x7fff_0000,
        }
    }

    /// Whether this keeps the call from being made, whoever else is asked.
    pub(super) const fn refuses(self) -> bool {
        !matches!(self, Self::Allow | Self::Log | Self::Trace(_))
    }
}

/// "Operation not permitted": what a refused call gets.
pub(super) const NOT_PERMITTED: Action = Action::Errno(1);
/// "No such call": what makes C libraries fall back to an older call, or a program to do without.
pub(super) const NO_SUCH_CALL: Action = Action::Errno(38);

/// How an argument is compared with a value; the argument stands at the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `==`
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
    /// The argument's bits that the mask has are those of the value.
    MaskedEqual {
        /// The bits that count.
        mask: u64,
    },
}

/// One condition on one argument. All 64 bits count, also where the kernel looks at 32: a value with stray upper bits
/// is another value, so a rule that allows does not allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// Which argument, from 0 to 5.
    pub argument: u8,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub value: u64,
}

impl Comparison {
    /// Whether it holds for these arguments.
    pub fn holds(&self, arguments: &[u64; 6]) -> bool {
        let Some(&argument) = arguments.get(usize::from(self.argument)) else { return false };
        match self.operator {
            Operator::NotEqual => argument != self.value,
            Operator::Less => argument < self.value,
            Operator::LessOrEqual => argument <= self.value,
            Operator::Equal => argument == self.value,
            Operator::GreaterOrEqual => argument >= self.value,
            Operator::Greater => argument > self.value,
            Operator::MaskedEqual { mask } => argument & mask == self.value,
        }
    }
}

/// A version of the kernel, as far as profiles ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    /// The first number.
    pub major: u32,
    /// The second.
    pub minor: u32,
}

/// What must be so for a rule to be in force. An empty list says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// Capabilities.
    pub capabilities: Vec<Capability>,
    /// Architectures, by Go's names.
    pub architectures: Vec<String>,
    /// The oldest kernel.
    pub kernel: Option<KernelVersion>,
}

/// Some calls, and what becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The calls, each once. A name no machine of ours knows is passed over: profiles speak of many architectures.
    pub names: Vec<&'static str>,
    /// What becomes of them.
    pub action: Action,
    /// Conditions on arguments, all of which must hold.
    pub arguments: Vec<Comparison>,
    /// In force only where all of this is so.
    pub only: Condition,
    /// Not in force where any of this is so.
    pub except: Condition,
}

impl Rule {
    /// A rule that is always in force.
    pub(super) fn always(names: &'static str, action: Action) -> Self {
        Self {
            names: names.split_ascii_whitespace().collect(),
            action,
            arguments: Vec::new(),
            only: Condition::default(),
            except: Condition::default(),
        }
    }

    pub(super) fn only_with(mut self, capability: Capability) -> Self {
        self.only.capabilities.push(capability);
        self
    }

    pub(super) fn except_with(mut self, capability: Capability) -> Self {
        self.except.capabilities.push(capability);
        self
    }

    pub(super) fn only_from(mut self, major: u32, minor: u32) -> Self {
        self.only.kernel = Some(KernelVersion { major, minor });
        self
    }

    pub(super) fn only_on(mut self, architecture: &str) -> Self {
        self.only.architectures.push(architecture.to_owned());
        self
    }

    pub(super) fn where_argument(mut self, argument: u8, operator: Operator, value: u64) -> Self {
        self.arguments.push(Comparison { argument, operator, value });
        self
    }

    pub(super) fn is_in_force(&self, there: &Surroundings) -> bool {
        let has = |capability| there.capabilities.contains(capability);
        let named = |name: &String| name == there.machine.go_name();
        let only = &self.only;
        let except = &self.except;
        only.capabilities.iter().all(has)
            && (only.architectures.is_empty() || only.architectures.iter().any(named))
            && only.kernel.is_none_or(|oldest| there.kernel >= oldest)
            && !except.capabilities.iter().any(has)
            && !except.architectures.iter().any(named)
            && except.kernel.is_none_or(|oldest| there.kernel < oldest)
    }
}

/// A whole profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What becomes of a call no rule speaks of.
    pub otherwise: Action,
    /// The ways into the kernel it opens beside the machine's own; through others, every call kills the process.
    pub companions: Vec<Abi>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// What decides which rules are in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The machine's own way into its kernel.
    pub machine: Abi,
    /// The kernel's version.
    pub kernel: KernelVersion,
    /// The capabilities the container may ever have: its bounding set.
    pub capabilities: Vec<Capability>,
}

impl Surroundings {
    /// This machine, for a container with these capabilities.
    pub fn here(capabilities: &[Capability]) -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        // A kernel that does not tell its version is taken for an old one: fewer rules that allow are in force.
        let kernel = KernelVersion::from_release(&release).unwrap_or(KernelVersion { major: 0, minor: 0 });
        Self { machine: Abi::native(), kernel, capabilities: capabilities.to_vec() }
    }
}

impl KernelVersion {
    /// Reads `6.18` of `6.18.44-generic`.
    pub fn from_release(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }
}
