//! What a lane and its engine say to each other beside the tensors: their shapes, and how it went.
//!
//! A request is one byte and the extents of the inputs; a reply is one byte and then the extents of the outputs, or a text. Both come
//! in one packet. The engine's process is full of other people's code, so its packets are read as a stranger's.

use crate::plan::Extent;

/// Most bytes of a packet: what a socket takes by default.
pub(crate) const PACKET: usize = 200 << 10;
/// Most bytes of a text.
const TEXT: usize = 16 << 10;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const BROKEN: u8 = 2;

/// How a batch went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The outputs lie in the lane's memory; their extents were read.
    Done,
    /// The engine refused the batch.
    Failed(String),
    /// The engine will refuse every batch from now on.
    Broken(String),
}

/// A packet that says nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine's answer makes no sense at byte {0}")]
pub(crate) struct Nonsense(usize);

/// A request to run what lies in the lane's memory.
pub(crate) fn request(packet: &mut Vec<u8>, inputs: &[Extent]) {
    packet.clear();
    packet.push(DONE);
    put_extents(packet, inputs);
}

/// Reads a request; the extents of the inputs go into `inputs`.
pub(crate) fn read_request(packet: &[u8], inputs: &mut [Extent]) -> Result<(), Nonsense> {
    read_reply(packet, inputs).and_then(|reply| if reply == Reply::Done { Ok(()) } else { Err(Nonsense(0)) })
}

/// Writes extents at the end of a packet.
fn put_extents(packet: &mut Vec<u8>, extents: &[Extent]) {
    for extent in extents {
        put_number(packet, extent.bytes);
        put_number(packet, extent.shape.len());
        for &size in &extent.shape {
            put_number(packet, size);
        }
    }
}

/// Reads as many extents as there are in `extents`, and nothing may be left over.
fn read_extents(packet: &[u8], extents: &mut [Extent]) -> Result<(), Nonsense> {
    let mut rest = packet;
    let here = |rest: &[u8]| Nonsense(packet.len() - rest.len());
    for extent in extents {
        extent.bytes = number(&mut rest).ok_or_else(|| here(rest))?;
        let rank = number(&mut rest).filter(|rank| *rank <= rest.len() / 8).ok_or_else(|| here(rest))?;
        extent.shape.clear();
        for _ in 0..rank {
            extent.shape.push(number(&mut rest).ok_or_else(|| here(rest))?);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(here(rest)) }
}

/// A reply about a batch that was run.
pub(crate) fn done(packet: &mut Vec<u8>, outputs: &[Extent]) {
    request(packet, outputs);
}

/// A reply about a batch that came to nothing.
pub(crate) fn refused(packet: &mut Vec<u8>, text: &str, for_ever: bool) {
    packet.clear();
    packet.push(if for_ever { BROKEN } else { FAILED });
    packet.extend_from_slice(text.as_bytes().get(..TEXT).unwrap_or(text.as_bytes()));
}

/// Reads a reply; the extents of the outputs go into `outputs`.
pub(crate) fn read_reply(packet: &[u8], outputs: &mut [Extent]) -> Result<Reply, Nonsense> {
    let (kind, rest) = packet.split_first().ok_or(Nonsense(0))?;
    match *kind {
        DONE => {
            read_extents(rest, outputs).map(|()| Reply::Done).map_err(|Nonsense(place)| Nonsense(place + 1))
        }
        FAILED => Ok(Reply::Failed(String::from_utf8_lossy(rest).into_owned())),
        BROKEN => Ok(Reply::Broken(String::from_utf8_lossy(rest).into_owned())),
        _ => Err(Nonsense(0)),
    }
}

fn put_number(packet: &mut Vec<u8>, number: usize) {
    packet.extend_from_slice(&(number as u64).to_le_bytes());
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (bytes, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use proptest::prelude::*;

    use super::{Nonsense, PACKET, Reply, done, put_extents, read_extents, read_reply, refused};
    use crate::plan::Extent;

    fn extents() -> impl Strategy<Value = Vec<Extent>> {
        let extent = (any::<usize>(), proptest::collection::vec(any::<usize>(), 0..6));
        proptest::collection::vec(extent.prop_map(|(bytes, shape)| Extent { shape, bytes }), 0..5)
    }

    proptest! {
        #[test]
        fn extents_come_back_as_they_were(extents in extents()) {
            let mut packet = Vec::new();
            put_extents(&mut packet, &extents);
            let mut read = vec![Extent { shape: vec![1, 2], bytes: 3 }; extents.len()];
            read_extents(&packet, &mut read).unwrap();
            prop_assert_eq!(read, extents);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut outputs = vec![Extent::default(); 3];
            let _ = read_reply(&packet, &mut outputs);
            prop_assert!(outputs.iter().all(|output| output.shape.len() <= 25));
        }

        #[test]
        fn a_cut_or_longer_packet_is_nonsense(extents in extents(), cut in 1_usize..8) {
            let mut packet = Vec::new();
            done(&mut packet, &extents);
            let mut read = vec![Extent::default(); extents.len()];
            packet.push(0);
            prop_assert!(read_reply(&packet, &mut read).is_err());
            packet.truncate(packet.len().saturating_sub(1 + cut));
            prop_assert!(read_reply(&packet, &mut read).is_err());
        }
    }

    #[test]
    fn a_rank_beyond_the_packet_is_refused_before_room_is_made() {
        let mut packet = vec![0; 8];
        packet.extend_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read_extents(&packet, &mut [Extent::default()]), Err(Nonsense(16)));
    }

    #[test]
    fn a_text_of_any_length_fits_into_a_packet() {
        let mut packet = Vec::new();
        refused(&mut packet, &"ä".repeat(PACKET), true);
        assert!(packet.len() < PACKET);
        assert!(matches!(read_reply(&packet, &mut []), Ok(Reply::Broken(text)) if text.starts_with('ä')));
        refused(&mut packet, "index out of range", false);
        assert_eq!(read_reply(&packet, &mut []), Ok(Reply::Failed("index out of range".to_owned())));
    }
}
