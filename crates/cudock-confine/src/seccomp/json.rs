//! Profiles in docker's form, from a file a user names.
//!
//! The form is that of `seccomp/default.json` in github.com/moby/profiles, which podman reads, too, with errors by name
//! (`errno`, `defaultErrno`) beside numbers. A field we do not know is an error: a misspelt `excludes` that is passed
//! over would be a rule that is always in force.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::abi::Abi;
use super::calls;
use super::profile::{Action, Comparison, Condition, KernelVersion, Operator, Profile, Rule};
use crate::{Capability, Error};

/// The most bytes a profile may have; docker's own has 17,000.
pub const LARGEST_PROFILE: usize = 1 << 20;

/// The most conditions one rule may have: six arguments, several values each.
const MOST_ARGUMENTS: usize = 64;

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

pub(super) fn read(bytes: &[u8]) -> Result<Profile, Error> {
    if bytes.len() > LARGEST_PROFILE {
        return Err(Error::ProfileSize { limit: LARGEST_PROFILE });
    }
    let document: Document = serde_json::from_slice(bytes).map_err(Error::ProfileForm)?;
    if document.listener_path.is_some_and(|path| !path.is_empty()) || document.listener_metadata.is_some() {
        return Err(meaning("listenerPath", "nobody listens for seccomp notifications here"));
    }
    flags(document.flags.as_deref().unwrap_or_default())?;
    let errno = errno("defaultErrno", document.default_errno_ret, document.default_errno.as_deref())?;
    let otherwise = action("defaultAction", &document.default_action, errno)?;
    let companions = companions(document.architectures, document.arch_map)?;
    let mut rules = Vec::new();
    for (at, syscall) in document.syscalls.unwrap_or_default().into_iter().enumerate() {
        read_rule(&format!("syscalls[{at}]"), syscall, &mut rules)?;
    }
    Ok(Profile { otherwise, companions, rules })
}

fn meaning(place: &str, what: impl Into<String>) -> Error {
    Error::ProfileMeaning { place: place.to_owned(), what: what.into() }
}

/// What runc lets through: how violations are logged and speculation is handled changes nothing about what is allowed.
fn flags(given: &[String]) -> Result<(), Error> {
    const KNOWN: [&str; 4] = [
        "SECCOMP_FILTER_FLAG_LOG",
        "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
        "SECCOMP_FILTER_FLAG_TSYNC",
        "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
    ];
    match given.iter().find(|flag| !KNOWN.contains(&flag.as_str())) {
        Some(flag) => Err(meaning("flags", format!("`{flag}` is no flag of a filter"))),
        None => Ok(()),
    }
}

fn companions(plain: Option<Vec<String>>, map: Option<Vec<ArchMap>>) -> Result<Vec<Abi>, Error> {
    let plain = plain.unwrap_or_default();
    let map = map.unwrap_or_default();
    if !plain.is_empty() && !map.is_empty() {
        return Err(meaning("archMap", "stands beside `architectures`: use one of them"));
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

/// The way into the kernel of this name; none for those this crate opens to nobody or no machine of ours has.
fn architecture(name: &str) -> Result<Option<Abi>, Error> {
    const OTHERS: [&str; 22] = [
        "ARM",
        "LOONGARCH64",
        "M68K",
        "MIPS",
        "MIPS64",
        "MIPS64N32",
        "MIPSEL",
        "MIPSEL64",
        "MIPSEL64N32",
        "NATIVE",
        "PARISC",
        "PARISC64",
        "PPC",
        "PPC64",
        "PPC64LE",
        "RISCV64",
        "S390",
        "S390X",
        "SH",
        "SHEB",
        "SW64",
        "X32",
    ];
    match name.strip_prefix("SCMP_ARCH_") {
        Some("X86_64") => Ok(Some(Abi::X86_64)),
        Some("X86") => Ok(Some(Abi::X86)),
        Some("AARCH64") => Ok(Some(Abi::Aarch64)),
        Some(other) if OTHERS.contains(&other) => Ok(None),
        _ => Err(meaning("architectures", format!("`{name}` is no architecture"))),
    }
}

fn read_rule(place: &str, syscall: Syscall, rules: &mut Vec<Rule>) -> Result<(), Error> {
    let names = match (syscall.name.filter(|name| !name.is_empty()), syscall.names.unwrap_or_default()) {
        (Some(_), names) if !names.is_empty() => {
            return Err(meaning(place, "has both `name` and `names`: use one of them"));
        }
        (Some(name), _) => vec![name],
        (None, names) if names.is_empty() => return Err(meaning(place, "names no system call")),
        (None, names) => names,
    };
    let action = action(place, &syscall.action, errno(place, syscall.errno_ret, syscall.errno.as_deref())?)?;
    let only = condition(place, syscall.includes.unwrap_or_default())?;
    let except = condition(place, syscall.excludes.unwrap_or_default())?;
    let arguments = syscall.args.unwrap_or_default();
    if arguments.len() > MOST_ARGUMENTS {
        return Err(meaning(
            place,
            format!("has {} conditions on arguments, more than {MOST_ARGUMENTS}", arguments.len()),
        ));
    }
    let arguments: Vec<Comparison> =
        arguments.iter().map(|argument| comparison(place, argument)).collect::<Result<_, _>>()?;
    let names: BTreeSet<&'static str> = names.iter().filter_map(|name| calls::known(name)).collect();
    let names: Vec<&'static str> = names.into_iter().collect();
    let rule = |arguments| Rule {
        names: names.clone(),
        action,
        arguments,
        only: only.clone(),
        except: except.clone(),
    };
    // Conditions on different arguments must all hold. Where one argument has several, each condition of the rule is
    // enough by itself: that is how runc reads it, and profiles are written for it.
    let repeated = arguments
        .iter()
        .enumerate()
        .any(|(at, one)| arguments.iter().take(at).any(|other| other.argument == one.argument));
    if repeated {
        rules.extend(arguments.into_iter().map(|one| rule(vec![one])));
    } else {
        rules.push(rule(arguments));
    }
    Ok(())
}

fn action(place: &str, name: &str, errno: Option<u16>) -> Result<Action, Error> {
    Ok(match name {
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_LOG" => Action::Log,
        // EPERM is what both runc and crun return where the profile does not say.
        "SCMP_ACT_ERRNO" => Action::Errno(errno.unwrap_or(1)),
        "SCMP_ACT_TRACE" => Action::Trace(errno.unwrap_or(1)),
        "SCMP_ACT_TRAP" => Action::Trap,
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        "SCMP_ACT_NOTIFY" => {
            return Err(meaning(place, "asks a listener (SCMP_ACT_NOTIFY), and there is none here"));
        }
        other => return Err(meaning(place, format!("`{other}` is no action"))),
    })
}

fn errno(place: &str, number: Option<u32>, name: Option<&str>) -> Result<Option<u16>, Error> {
    /// The largest number the kernel takes.
    const LARGEST: u16 = 4095;
    let by_number = match number {
        None => None,
        Some(number) => match u16::try_from(number) {
            Ok(number) if number <= LARGEST => Some(number),
            _ => return Err(meaning(place, format!("{number} is no error number"))),
        },
    };
    let by_name = match name.filter(|name| !name.is_empty()) {
        Some("EPERM") => Some(1),
        Some("ENOENT") => Some(2),
        Some("EACCES") => Some(13),
        Some("EINVAL") => Some(22),
        Some("ENOSYS") => Some(38),
        Some("EAFNOSUPPORT") => Some(97),
        Some(other) if by_number.is_none() => {
            return Err(meaning(
                place,
                format!("the error `{other}` is not known by name: give its number as well"),
            ));
        }
        None | Some(_) => None,
    };
    match (by_number, by_name) {
        (Some(number), Some(named)) if number != named => {
            Err(meaning(place, format!("the error is {number} by number and {named} by name")))
        }
        (number, named) => Ok(number.or(named)),
    }
}

fn comparison(place: &str, argument: &Argument) -> Result<Comparison, Error> {
    let index = u8::try_from(argument.index).ok().filter(|&index| index < 6);
    let index = index.ok_or_else(|| {
        meaning(place, format!("a system call has no argument {}, only 0 to 5", argument.index))
    })?;
    let value = argument.value;
    let operator = match argument.op.as_str() {
        "SCMP_CMP_NE" => Operator::NotEqual,
        "SCMP_CMP_LT" => Operator::Less,
        "SCMP_CMP_LE" => Operator::LessOrEqual,
        "SCMP_CMP_EQ" => Operator::Equal,
        "SCMP_CMP_GE" => Operator::GreaterOrEqual,
        "SCMP_CMP_GT" => Operator::Greater,
        "SCMP_CMP_MASKED_EQ" => {
            let wanted = argument.value_two.unwrap_or(0);
            return Ok(Comparison {
                argument: index,
                operator: Operator::MaskedEqual { mask: value },
                value: wanted & value,
            });
        }
        other => return Err(meaning(place, format!("`{other}` is no comparison"))),
    };
    Ok(Comparison { argument: index, operator, value })
}

fn condition(place: &str, filter: Filter) -> Result<Condition, Error> {
    let capabilities = filter.caps.unwrap_or_default();
    let capabilities = capabilities
        .iter()
        .map(|name| Capability::from_name(name).map_err(|error| meaning(place, error.to_string())))
        .collect::<Result<_, _>>()?;
    let kernel = match filter.min_kernel.filter(|version| !version.is_empty()) {
        None => None,
        Some(version) => Some(KernelVersion::from_release(&version).ok_or_else(|| {
            meaning(place, format!("`{version}` is no version of a kernel: write it as `4.8`"))
        })?),
    };
    Ok(Condition { capabilities, architectures: filter.arches.unwrap_or_default(), kernel })
}
