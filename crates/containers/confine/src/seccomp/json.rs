//! Parses profiles in docker's JSON format.
//!
//! The format is that of `seccomp/default.json` in github.com/moby/profiles. Podman's additions, errors by name (`errno`,
//! `defaultErrno`), are accepted. An unknown field is an error: ignoring a misspelled `excludes` would make its rule
//! unconditional.

use serde::Deserialize;

use super::abi::Abi;
use super::profile::{Action, Comparison, Condition, KernelVersion, Operator, Profile, SyscallRule};
use super::syscalls;
use crate::{Capability, ConfineError};

/// The largest profile in bytes; docker's own has 17,000.
pub const MAX_PROFILE_BYTES: usize = 1 << 20;

/// The most conditions on arguments in one rule.
const MAX_CONDITIONS: usize = 64;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    default_action: String,
    default_errno_ret: Option<u32>,
    default_errno: Option<String>,
    architectures: Option<Vec<String>>,
    arch_map: Option<Vec<ArchMap>>,
    syscalls: Option<Vec<Syscall>>,
    flags: Option<Vec<String>>,
    listener_path: Option<String>,
    listener_metadata: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ArchMap {
    architecture: String,
    sub_architectures: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Syscall {
    name: Option<String>,
    names: Option<Vec<String>>,
    action: String,
    errno_ret: Option<u32>,
    errno: Option<String>,
    args: Option<Vec<Argument>>,
    #[serde(rename = "comment")]
    _comment: Option<String>,
    includes: Option<Filter>,
    excludes: Option<Filter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Argument {
    index: u32,
    value: u64,
    value_two: Option<u64>,
    op: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Filter {
    caps: Option<Vec<String>>,
    arches: Option<Vec<String>>,
    min_kernel: Option<String>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Profile, ConfineError> {
    if bytes.len() > MAX_PROFILE_BYTES {
        return Err(ConfineError::ProfileSize { limit: MAX_PROFILE_BYTES });
    }
    let document: Document = serde_json::from_slice(bytes).map_err(ConfineError::ProfileFormat)?;
    if document.listener_path.is_some_and(|path| !path.is_empty()) || document.listener_metadata.is_some() {
        return Err(invalid("listenerPath", "seccomp notifications are not supported"));
    }
    flags(document.flags.as_deref().unwrap_or_default())?;
    let errno = errno("defaultErrno", document.default_errno_ret, document.default_errno.as_deref())?;
    let otherwise = action("defaultAction", &document.default_action, errno)?;
    let companions = companions(document.architectures, document.arch_map)?;
    let mut rules = Vec::new();
    for (index, syscall) in document.syscalls.unwrap_or_default().into_iter().enumerate() {
        parse_rule(&format!("syscalls[{index}]"), syscall, &mut rules)?;
    }
    Ok(Profile { otherwise, companions, rules })
}

fn invalid(location: &str, reason: impl Into<String>) -> ConfineError {
    ConfineError::ProfileValue { location: location.to_owned(), reason: reason.into() }
}

/// Accepts the flags that runc accepts: none of them changes what is allowed.
fn flags(flags: &[String]) -> Result<(), ConfineError> {
    const KNOWN: [&str; 4] = ["LOG", "SPEC_ALLOW", "TSYNC", "WAIT_KILLABLE_RECV"];
    let is_known =
        |flag: &str| flag.strip_prefix("SECCOMP_FILTER_FLAG_").is_some_and(|name| KNOWN.contains(&name));
    match flags.iter().find(|flag| !is_known(flag)) {
        Some(flag) => Err(invalid("flags", format!("unknown flag `{flag}`"))),
        None => Ok(()),
    }
}

fn companions(plain: Option<Vec<String>>, map: Option<Vec<ArchMap>>) -> Result<Vec<Abi>, ConfineError> {
    let plain = plain.unwrap_or_default();
    let map = map.unwrap_or_default();
    if !plain.is_empty() && !map.is_empty() {
        return Err(invalid("archMap", "conflicts with `architectures`: use one of them"));
    }
    let mut abis = Vec::new();
    for name in &plain {
        abis.extend(architecture(name)?);
    }
    for entry in &map {
        let own = architecture(&entry.architecture)?;
        for name in entry.sub_architectures.iter().flatten() {
            let sub = architecture(name)?;
            abis.extend(sub.filter(|sub| own.is_some_and(|own| own.with_companions().contains(sub))));
        }
    }
    Ok(abis)
}

/// The ABI of this name; `None` for those that this crate never allows or no supported machine has.
fn architecture(name: &str) -> Result<Option<Abi>, ConfineError> {
    const OTHERS: &str = "ARM LOONGARCH64 M68K MIPS MIPS64 MIPS64N32 MIPSEL MIPSEL64 MIPSEL64N32 NATIVE PARISC \
        PARISC64 PPC PPC64 PPC64LE RISCV64 S390 S390X SH SHEB SW64 X32";
    match name.strip_prefix("SCMP_ARCH_") {
        Some("X86_64") => Ok(Some(Abi::X86_64)),
        Some("X86") => Ok(Some(Abi::X86)),
        Some("AARCH64") => Ok(Some(Abi::Aarch64)),
        Some(other) if OTHERS.split(' ').any(|known| known == other) => Ok(None),
        _ => Err(invalid("architectures", format!("unknown architecture `{name}`"))),
    }
}

fn parse_rule(location: &str, syscall: Syscall, rules: &mut Vec<SyscallRule>) -> Result<(), ConfineError> {
    let names = match (syscall.name.filter(|name| !name.is_empty()), syscall.names.unwrap_or_default()) {
        (Some(_), names) if !names.is_empty() => {
            return Err(invalid(location, "has both `name` and `names`: use one of them"));
        }
        (Some(name), _) => vec![name],
        (None, names) if names.is_empty() => return Err(invalid(location, "names no system call")),
        (None, names) => names,
    };
    let action =
        action(location, &syscall.action, errno(location, syscall.errno_ret, syscall.errno.as_deref())?)?;
    let only = condition(location, syscall.includes.unwrap_or_default())?;
    let except = condition(location, syscall.excludes.unwrap_or_default())?;
    let arguments = syscall.args.unwrap_or_default();
    if arguments.len() > MAX_CONDITIONS {
        let count = arguments.len();
        return Err(invalid(
            location,
            format!("has {count} conditions on arguments, more than {MAX_CONDITIONS}"),
        ));
    }
    let arguments: Vec<Comparison> =
        arguments.iter().map(|argument| comparison(location, argument)).collect::<Result<_, _>>()?;
    let mut names: Vec<&'static str> = names.iter().filter_map(|name| syscalls::known(name)).collect();
    names.sort_unstable();
    names.dedup();
    let rule = |arguments| SyscallRule {
        names: names.clone(),
        action,
        arguments,
        only: only.clone(),
        except: except.clone(),
    };
    // Conditions on different arguments must all hold. If one argument has several, any condition of the rule is
    // sufficient, as in runc.
    let repeated = arguments
        .iter()
        .enumerate()
        .any(|(index, one)| arguments.iter().take(index).any(|other| other.argument == one.argument));
    if repeated {
        rules.extend(arguments.into_iter().map(|one| rule(vec![one])));
    } else {
        rules.push(rule(arguments));
    }
    Ok(())
}

fn action(location: &str, name: &str, errno: Option<u16>) -> Result<Action, ConfineError> {
    Ok(match name {
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_LOG" => Action::Log,
        // EPERM is the default of both runc and crun.
        "SCMP_ACT_ERRNO" => Action::Errno(errno.unwrap_or(1)),
        "SCMP_ACT_TRACE" => Action::Trace(errno.unwrap_or(1)),
        "SCMP_ACT_TRAP" => Action::Trap,
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_NOTIFY" => return Err(invalid(location, "SCMP_ACT_NOTIFY is not supported")),
        other => return Err(invalid(location, format!("unknown action `{other}`"))),
    })
}

fn errno(location: &str, number: Option<u32>, name: Option<&str>) -> Result<Option<u16>, ConfineError> {
    /// The kernel's limit.
    const MAX_ERRNO: u16 = 4095;
    let check = |number: u32| {
        let valid = u16::try_from(number).ok().filter(|number| *number <= MAX_ERRNO);
        valid.ok_or_else(|| invalid(location, format!("{number} is not an error number")))
    };
    let by_number = number.map(check).transpose()?;
    let by_name = match name.filter(|name| !name.is_empty()) {
        Some("EPERM") => Some(1),
        Some("ENOENT") => Some(2),
        Some("EACCES") => Some(13),
        Some("EINVAL") => Some(22),
        Some("ENOSYS") => Some(38),
        Some("EAFNOSUPPORT") => Some(97),
        Some(other) if by_number.is_none() => {
            return Err(invalid(location, format!("unknown error name `{other}`: add its number")));
        }
        None | Some(_) => None,
    };
    match (by_number, by_name) {
        (Some(number), Some(named)) if number != named => {
            Err(invalid(location, format!("error number {number} does not match the name, which is {named}")))
        }
        (number, named) => Ok(number.or(named)),
    }
}

fn comparison(location: &str, argument: &Argument) -> Result<Comparison, ConfineError> {
    let index = u8::try_from(argument.index).ok().filter(|&index| index < 6);
    let index = index.ok_or_else(|| {
        invalid(location, format!("a system call has no argument {}, only 0 to 5", argument.index))
    })?;
    let mut value = argument.value;
    let operator = match argument.op.as_str() {
        "SCMP_CMP_NE" => Operator::NotEqual,
        "SCMP_CMP_LT" => Operator::Less,
        "SCMP_CMP_LE" => Operator::LessOrEqual,
        "SCMP_CMP_EQ" => Operator::Equal,
        "SCMP_CMP_GE" => Operator::GreaterOrEqual,
        "SCMP_CMP_GT" => Operator::Greater,
        "SCMP_CMP_MASKED_EQ" => {
            let mask = value;
            value &= argument.value_two.unwrap_or(0);
            Operator::MaskedEqual { mask }
        }
        other => return Err(invalid(location, format!("unknown comparison `{other}`"))),
    };
    Ok(Comparison { argument: index, operator, value })
}

fn condition(location: &str, filter: Filter) -> Result<Condition, ConfineError> {
    let capabilities = filter.caps.unwrap_or_default();
    let capabilities = capabilities
        .iter()
        .map(|name| Capability::from_name(name).map_err(|error| invalid(location, error.to_string())))
        .collect::<Result<_, _>>()?;
    let version = filter.min_kernel.filter(|version| !version.is_empty());
    let kernel = version.map(|version| {
        let parsed = KernelVersion::from_release(&version);
        parsed.ok_or_else(|| {
            invalid(location, format!("`{version}` is not a kernel version: write it as `4.8`"))
        })
    });
    let architectures = filter.arches.unwrap_or_default();
    Ok(Condition { capabilities, architectures, kernel: kernel.transpose()? })
}
