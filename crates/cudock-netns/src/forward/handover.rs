//! What a forwarder is told when it is started: numbers of descriptors that it inherits, and where they lead.
//!
//! `1,parent=412,namespace=7,idle=90,carriage=splice,tcp=3:80,udp=4:53`: one argument of a command line, so that
//! nothing has to be written anywhere before the process runs.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::{SockRef, Type};

use super::{Carriage, Listeners, Options, Protocol};
use crate::{Error, Namespace, Result, sys};

/// The form described here; another version of the program would say another number.
const FORM: &str = "1";

/// A description of what a forwarder inherits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The process that it works for, and ends with.
    pub parent: u32,
    /// The descriptor of the container's namespace.
    pub namespace: RawFd,
    /// How to work.
    pub options: Options,
    /// The listeners.
    pub listeners: Vec<Handed>,
}

/// A description of one listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// What is spoken on it.
    pub protocol: Protocol,
    /// The number of its descriptor.
    pub descriptor: RawFd,
    /// The port inside.
    pub container_port: u16,
}

/// What the descriptors turned out to be.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(crate) namespace: Namespace,
    pub(crate) listeners: Vec<(OwnedFd, Handed)>,
}

impl Handover {
    /// Describes listeners of ours for a process that we are about to start.
    pub(crate) fn of(listeners: &Listeners, namespace: RawFd, options: Options) -> Self {
        let listeners = listeners.iter().map(|one| Handed {
            protocol: one.publication().protocol,
            descriptor: rustix::fd::AsFd::as_fd(one).as_raw_fd(),
            container_port: one.publication().container_port,
        });
        Self { parent: std::process::id(), namespace, options, listeners: listeners.collect() }
    }

    /// All descriptors in it.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.listeners.iter().map(|one| one.descriptor).chain([self.namespace]).collect()
    }

    /// As one argument.
    pub fn encode(&self) -> String {
        let Options { udp_idle, carriage } = self.options;
        let mut text = format!(
            "{FORM},parent={},namespace={},idle={},carriage={carriage}",
            self.parent,
            self.namespace,
            udp_idle.as_millis(),
        );
        for Handed { protocol, descriptor, container_port } in &self.listeners {
            // Writing to a String cannot fail.
            let _ = write!(text, ",{protocol}={descriptor}:{container_port}");
        }
        text
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(text: &str) -> Result<Self> {
        read(text).map_err(|reason| Error::Handover { text: text.to_owned(), reason })
    }

    /// Takes the descriptors over, and looks whether they are what they should be.
    pub(crate) fn adopt(&self) -> Result<Adopted> {
        let wrong = |reason: String| Error::Handover { text: self.encode(), reason };
        let mut seen = HashSet::new();
        if let Some(twice) = self.descriptors().into_iter().find(|number| !seen.insert(*number)) {
            return Err(wrong(format!("descriptor {twice} is named twice")));
        }
        let adopt =
            |number| sys::adopt(number).map_err(|error| wrong(format!("descriptor {number}: {error}")));
        let namespace = Namespace::from(adopt(self.namespace)?);
        let mut listeners = Vec::with_capacity(self.listeners.len());
        for &handed in &self.listeners {
            let socket = adopt(handed.descriptor)?;
            let kind = match handed.protocol {
                Protocol::Tcp => Type::STREAM,
                Protocol::Udp => Type::DGRAM,
            };
            if !SockRef::from(&socket).r#type().is_ok_and(|found| found == kind) {
                return Err(wrong(format!(
                    "descriptor {} is not a {} socket",
                    handed.descriptor, handed.protocol
                )));
            }
            listeners.push((socket, handed));
        }
        Ok(Adopted { namespace, listeners })
    }
}

fn read(text: &str) -> std::result::Result<Handover, String> {
    let mut words = text.split(',');
    if words.next() != Some(FORM) {
        return Err(format!("it is not of form {FORM}"));
    }
    let (mut parent, mut namespace, mut idle, mut carriage) = (None, None, None, None);
    let mut listeners = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`{word}` has no value"))?;
        match key {
            "parent" => parent = Some(number(value)?),
            "namespace" => namespace = Some(number(value)?),
            "idle" => idle = Some(Duration::from_millis(number(value)?)),
            "carriage" => {
                carriage = Some(Carriage::named(value).ok_or_else(|| format!("carriage `{value}`"))?);
            }
            "tcp" => listeners.push(read_listener(Protocol::Tcp, value)?),
            "udp" => listeners.push(read_listener(Protocol::Udp, value)?),
            _ => return Err(format!("`{key}` is unknown")),
        }
    }
    let missing = |what: &str| format!("the {what} is missing");
    Ok(Handover {
        parent: parent.ok_or_else(|| missing("parent"))?,
        namespace: namespace.ok_or_else(|| missing("namespace"))?,
        options: Options {
            udp_idle: idle.ok_or_else(|| missing("idle time"))?,
            carriage: carriage.ok_or_else(|| missing("carriage"))?,
        },
        listeners,
    })
}

fn read_listener(protocol: Protocol, value: &str) -> std::result::Result<Handed, String> {
    let (descriptor, port) = value.split_once(':').ok_or_else(|| format!("`{value}` has no port"))?;
    Ok(Handed { protocol, descriptor: number(descriptor)?, container_port: number(port)? })
}

fn number<N: std::str::FromStr>(text: &str) -> std::result::Result<N, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

    use proptest::prelude::*;

    use super::*;

    fn handed() -> impl Strategy<Value = Handed> {
        (any::<bool>(), any::<i32>(), any::<u16>()).prop_map(|(udp, descriptor, container_port)| Handed {
            protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
            descriptor,
            container_port,
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_the_same(
            parent in any::<u32>(),
            namespace in any::<i32>(),
            idle in any::<u64>(),
            splice in any::<bool>(),
            listeners in proptest::collection::vec(handed(), 0..5),
        ) {
            let carriage = if splice { Carriage::Splice } else { Carriage::Copy };
            let options = Options { udp_idle: Duration::from_millis(idle), carriage };
            let handover = Handover { parent, namespace, options, listeners };
            prop_assert_eq!(Handover::decode(&handover.encode()).unwrap(), handover);
        }

        #[test]
        fn no_text_makes_the_reader_fall(text in "\\PC{0,40}") {
            let _ = Handover::decode(&text);
            let _ = Handover::decode(&format!("1,{text}"));
        }
    }

    #[test]
    fn a_part_that_is_missing_or_unknown_is_named() {
        let said = |text| Handover::decode(text).unwrap_err().to_string();
        assert!(said("2,parent=1").contains("not of form 1"));
        assert!(said("1,parent=1,idle=1,carriage=copy").contains("the namespace is missing"));
        assert!(said("1,parent=x").contains("`x` is not a number"));
        assert!(said("1,sctp=3:80").contains("`sctp` is unknown"));
        assert!(said("1,tcp=3").contains("`3` has no port"));
    }

    #[test]
    fn descriptors_that_are_not_open_or_are_standard_streams_are_not_taken() {
        for number in [-1, 0, 1, 2, 1_000_000] {
            let text = format!("1,parent=1,namespace={number},idle=1,carriage=copy");
            let error = Handover::decode(&text).unwrap().adopt().unwrap_err().to_string();
            assert!(error.contains(&format!("descriptor {number}")), "{error}");
        }
    }

    #[test]
    fn a_descriptor_named_twice_is_not_taken() {
        let text = "1,parent=1,namespace=900,idle=1,carriage=copy,tcp=900:1";
        let error = Handover::decode(text).unwrap().adopt().unwrap_err().to_string();
        assert!(error.contains("descriptor 900 is named twice"), "{error}");
    }
}
