//! Profiles: rules about system calls by name, independent of machine and capabilities.

use super::abi::Abi;
use crate::Capability;

/// The action for a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Allow,
    /// It is executed and logged.
    Log,
    /// It fails with this error number.
    Errno(u16),
    /// The caller gets SIGSYS.
    Trap,
    /// A tracer decides and gets this number; without one it fails with ENOSYS.
    Trace(u16),
    KillThread,
    KillProcess,
}

impl Action {
    /// The return value of the filter program.
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

    /// Whether the call is never executed.
    pub(super) const fn refuses(self) -> bool {
        !matches!(self, Self::Allow | Self::Log | Self::Trace(_))
    }
}

/// EPERM, for denied calls.
pub(super) const NOT_PERMITTED: Action = Action::Errno(1);
/// ENOSYS, after which C libraries fall back to an older call.
pub(super) const NO_SUCH_CALL: Action = Action::Errno(38);

/// How an argument is compared with a value; the argument is on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    NotEqual,
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    /// The masked argument equals the value.
    MaskedEqual {
        mask: u64,
    },
}

/// A condition on one argument. All 64 bits are compared even if the kernel uses 32, so a rule that allows a value does not
/// allow it with stray upper bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// Which argument, from 0 to 5.
    pub argument: u8,
    pub operator: Operator,
    pub value: u64,
}

impl Comparison {
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

/// A kernel version, as far as profiles need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    pub major: u32,
    pub minor: u32,
}

/// When a rule applies. Empty fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    pub capabilities: Vec<Capability>,
    /// Architectures, by Go's names.
    pub architectures: Vec<String>,
    /// The oldest kernel.
    pub kernel: Option<KernelVersion>,
}

/// System calls and what happens to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyscallRule {
    /// Their names, each once. Names that the machine does not have are ignored: profiles cover many architectures.
    pub names: Vec<&'static str>,
    pub action: Action,
    /// Conditions on arguments, all of which must hold.
    pub arguments: Vec<Comparison>,
    /// Applies only if all of this holds.
    pub only: Condition,
    /// Does not apply if any of this holds.
    pub except: Condition,
}

impl SyscallRule {
    /// A rule that always applies.
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

    /// Adds a condition on the first argument.
    pub(super) fn where_first(mut self, operator: Operator, value: u64) -> Self {
        self.arguments.push(Comparison { argument: 0, operator, value });
        self
    }

    pub(super) fn applies(&self, context: &FilterContext) -> bool {
        let has = |capability| context.capabilities.contains(capability);
        let named = |name: &String| name == context.machine.go_name();
        let only = &self.only;
        let except = &self.except;
        only.capabilities.iter().all(has)
            && (only.architectures.is_empty() || only.architectures.iter().any(named))
            && only.kernel.is_none_or(|oldest| context.kernel >= oldest)
            && !except.capabilities.iter().any(has)
            && !except.architectures.iter().any(named)
            && except.kernel.is_none_or(|oldest| context.kernel < oldest)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The action for calls without a rule.
    pub otherwise: Action,
    /// The ABIs it allows besides the machine's own; a call through any other kills the process.
    pub companions: Vec<Abi>,
    pub rules: Vec<SyscallRule>,
}

/// The conditions that decide which rules apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterContext {
    /// The machine's own ABI.
    pub machine: Abi,
    pub kernel: KernelVersion,
    /// The container's bounding set.
    pub capabilities: Vec<Capability>,
}

impl FilterContext {
    /// This machine, for a container with these capabilities.
    pub fn here(capabilities: &[Capability]) -> Self {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        // An unknown version counts as old: fewer rules that allow apply.
        let kernel = KernelVersion::from_release(&release).unwrap_or(KernelVersion { major: 0, minor: 0 });
        Self { machine: Abi::native(), kernel, capabilities: capabilities.to_vec() }
    }
}

impl KernelVersion {
    /// Parses `6.18.44-generic`.
    pub fn from_release(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some(Self { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
    }
}
