//! The argument of a forwarder process: inherited file descriptors and their purpose.
//!
//! `1,parent=412,namespace=7,idle=90,carriage=splice,tcp=3:80,udp=4:53`: a single command-line argument, so that no file is
//! needed.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::SockRef;

use super::{ForwardOptions, Listeners, Protocol, RelayMode};
use crate::{Namespace, NetnsError, Result, sys};

const VERSION: &str = "1";

/// Describes what a forwarder inherits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The process it works for, and ends with.
    pub(super) parent: u32,
    namespace: RawFd,
    pub(super) options: ForwardOptions,
    listeners: Vec<ListenerSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListenerSpec {
    pub(super) protocol: Protocol,
    descriptor: RawFd,
    pub(super) container_port: u16,
}

/// The inherited descriptors, validated.
#[derive(Debug)]
pub(super) struct InheritedDescriptors {
    pub(super) namespace: Namespace,
    pub(super) listeners: Vec<(OwnedFd, ListenerSpec)>,
}

impl Handover {
    /// Describes listeners for a process that is about to be started.
    pub(crate) fn of(listeners: &Listeners, namespace: RawFd, options: ForwardOptions) -> Self {
        let listeners = listeners.all.iter().map(|one| ListenerSpec {
            protocol: one.mapping.protocol,
            descriptor: one.socket.as_raw_fd(),
            container_port: one.mapping.container_port,
        });
        Self { parent: std::process::id(), namespace, options, listeners: listeners.collect() }
    }

    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.listeners.iter().map(|one| one.descriptor).chain([self.namespace]).collect()
    }

    /// Encodes it as one argument.
    pub fn encode(&self) -> String {
        let ForwardOptions { udp_idle, relay_mode } = self.options;
        let mut text = format!(
            "{VERSION},parent={},namespace={},idle={},carriage={relay_mode}",
            self.parent,
            self.namespace,
            udp_idle.as_millis(),
        );
        for ListenerSpec { protocol, descriptor, container_port } in &self.listeners {
            // Writing to a String cannot fail.
            let _ = write!(text, ",{protocol}={descriptor}:{container_port}");
        }
        text
    }

    /// Decodes the output of [`encode`](Self::encode).
    pub fn decode(text: &str) -> Result<Self> {
        read(text).map_err(|reason| NetnsError::Handover { text: text.to_owned(), reason })
    }

    /// Takes ownership of the descriptors and validates them.
    pub(super) fn adopt(&self) -> Result<InheritedDescriptors> {
        let invalid = |reason: String| NetnsError::Handover { text: self.encode(), reason };
        let mut seen = HashSet::new();
        if let Some(twice) = self.descriptors().into_iter().find(|number| !seen.insert(*number)) {
            return Err(invalid(format!("descriptor {twice} is listed twice")));
        }
        let adopt =
            |number| sys::adopt(number).map_err(|error| invalid(format!("descriptor {number}: {error}")));
        let namespace = Namespace::from(adopt(self.namespace)?);
        let mut listeners = Vec::with_capacity(self.listeners.len());
        for &spec in &self.listeners {
            let socket = adopt(spec.descriptor)?;
            if !SockRef::from(&socket).r#type().is_ok_and(|found| found == spec.protocol.socket_type()) {
                let ListenerSpec { descriptor, protocol, .. } = spec;
                return Err(invalid(format!("descriptor {descriptor} is not a {protocol} socket")));
            }
            listeners.push((socket, spec));
        }
        Ok(InheritedDescriptors { namespace, listeners })
    }
}

fn read(text: &str) -> std::result::Result<Handover, String> {
    let mut fields = text.split(',');
    if fields.next() != Some(VERSION) {
        return Err(format!("expected version {VERSION}"));
    }
    let (mut parent, mut namespace, mut idle, mut relay_mode) = (None, None, None, None);
    let mut listeners = Vec::new();
    for field in fields {
        let (key, value) = field.split_once('=').ok_or_else(|| format!("`{field}` has no value"))?;
        match key {
            "parent" => parent = Some(number(value)?),
            "namespace" => namespace = Some(number(value)?),
            "idle" => idle = Some(Duration::from_millis(number(value)?)),
            "carriage" => {
                relay_mode = Some(RelayMode::named(value).ok_or_else(|| format!("carriage `{value}`"))?);
            }
            "tcp" => listeners.push(read_listener(Protocol::Tcp, value)?),
            "udp" => listeners.push(read_listener(Protocol::Udp, value)?),
            _ => return Err(format!("`{key}` is unknown")),
        }
    }
    let missing = |what: &str| format!("missing {what}");
    Ok(Handover {
        parent: parent.ok_or_else(|| missing("parent"))?,
        namespace: namespace.ok_or_else(|| missing("namespace"))?,
        options: ForwardOptions {
            udp_idle: idle.ok_or_else(|| missing("idle time"))?,
            relay_mode: relay_mode.ok_or_else(|| missing("carriage"))?,
        },
        listeners,
    })
}

fn read_listener(protocol: Protocol, value: &str) -> std::result::Result<ListenerSpec, String> {
    let (descriptor, port) = value.split_once(':').ok_or_else(|| format!("`{value}` has no port"))?;
    Ok(ListenerSpec { protocol, descriptor: number(descriptor)?, container_port: number(port)? })
}

fn number<N: std::str::FromStr>(text: &str) -> std::result::Result<N, String> {
    text.parse().map_err(|_| format!("invalid number `{text}`"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec() -> impl Strategy<Value = ListenerSpec> {
        (any::<bool>(), any::<i32>(), any::<u16>()).prop_map(|(udp, descriptor, container_port)| {
            ListenerSpec {
                protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
                descriptor,
                container_port,
            }
        })
    }

    proptest! {
        #[test]
        fn encoding_round_trips(
            parent in any::<u32>(),
            namespace in any::<i32>(),
            idle in any::<u64>(),
            splice in any::<bool>(),
            listeners in proptest::collection::vec(spec(), 0..5),
        ) {
            let relay_mode = if splice { RelayMode::Splice } else { RelayMode::Copy };
            let options = ForwardOptions { udp_idle: Duration::from_millis(idle), relay_mode };
            let handover = Handover { parent, namespace, options, listeners };
            prop_assert_eq!(Handover::decode(&handover.encode()).unwrap(), handover);
        }

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,40}") {
            let _ = Handover::decode(&text);
            let _ = Handover::decode(&format!("1,{text}"));
        }
    }

    #[test]
    fn missing_and_unknown_keys_are_reported() {
        let error = |text| Handover::decode(text).unwrap_err().to_string();
        assert!(error("2,parent=1").contains("expected version 1"));
        assert!(error("1,parent=1,idle=1,carriage=copy").contains("missing namespace"));
        assert!(error("1,parent=x").contains("invalid number `x`"));
        assert!(error("1,sctp=3:80").contains("`sctp` is unknown"));
        assert!(error("1,tcp=3").contains("`3` has no port"));
    }

    #[test]
    fn closed_descriptors_and_standard_streams_are_rejected() {
        for number in [-1, 0, 1, 2, 1_000_000] {
            let text = format!("1,parent=1,namespace={number},idle=1,carriage=copy");
            let error = Handover::decode(&text).unwrap().adopt().unwrap_err().to_string();
            assert!(error.contains(&format!("descriptor {number}")), "{error}");
        }
    }

    #[test]
    fn a_descriptor_listed_twice_is_rejected() {
        let text = "1,parent=1,namespace=900,idle=1,carriage=copy,tcp=900:1";
        let error = Handover::decode(text).unwrap().adopt().unwrap_err().to_string();
        assert!(error.contains("descriptor 900 is listed twice"), "{error}");
    }
}
