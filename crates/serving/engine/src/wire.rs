//! Packets between a lane and its engine: shapes and results, without the tensors.
//!
//! A request is the number of the batch, one byte and the extents of the inputs; a reply is the number of the batch that it is
//! about, one byte and the extents of the outputs, or an error message. Each is one packet. The engine process runs
//! third-party code, so its packets are parsed as untrusted input.

use crate::{EngineError, Extent, InvalidRow};

/// Largest packet in bytes: what a socket accepts by default.
pub(crate) const PACKET: usize = 200 << 10;
/// Longest error message in bytes.
const TEXT: usize = 16 << 10;
/// Longest reason for a row in bytes.
const ROW_TEXT: usize = 1 << 10;
/// Bytes of a number.
const NUMBER: usize = 8;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const BROKEN: u8 = 2;
const OUT_OF_MEMORY: u8 = 3;
const INVALID_ROWS: u8 = 4;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchReply {
    /// The outputs are in the lane's memory; their extents were read.
    Done,
    Failed(String),
    /// Every batch will fail from now on.
    Broken(String),
    /// The batch does not fit into the device's memory; a smaller one may.
    OutOfMemory(String),
    /// Nothing was run, because the model does not take some rows.
    InvalidRows(Vec<InvalidRow>),
}

/// An invalid packet, with the position of the error.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid packet from the engine at byte {0}")]
pub(crate) struct InvalidPacket(usize);

/// Writes a request to run a batch with these inputs, or the reply of a finished batch with these outputs.
pub(crate) fn write_extents(packet: &mut Vec<u8>, batch: u64, extents: &[Extent]) {
    begin(packet, batch, DONE);
    put_extents(packet, extents);
}

/// Parses a request and returns the number of its batch; the extents of the inputs go into `inputs`.
pub(crate) fn read_request(packet: &[u8], inputs: &mut [Extent]) -> Result<u64, InvalidPacket> {
    match read_reply(packet, inputs)? {
        (batch, BatchReply::Done) => Ok(batch),
        _ => Err(InvalidPacket(NUMBER)),
    }
}

fn begin(packet: &mut Vec<u8>, batch: u64, kind: u8) {
    packet.clear();
    packet.extend_from_slice(&batch.to_le_bytes());
    packet.push(kind);
}

fn put_extents(packet: &mut Vec<u8>, extents: &[Extent]) {
    for extent in extents {
        put_number(packet, extent.bytes);
        put_number(packet, extent.shape.len());
        for &size in &extent.shape {
            put_number(packet, size);
        }
    }
}

/// Parses as many extents as there are in `extents`; nothing may be left over.
fn read_extents(packet: &[u8], extents: &mut [Extent]) -> Result<(), InvalidPacket> {
    let mut rest = packet;
    let invalid_at = |rest: &[u8]| InvalidPacket(packet.len() - rest.len());
    for extent in extents {
        extent.bytes = number(&mut rest).ok_or_else(|| invalid_at(rest))?;
        let rank =
            number(&mut rest).filter(|rank| *rank <= rest.len() / NUMBER).ok_or_else(|| invalid_at(rest))?;
        extent.shape.clear();
        for _ in 0..rank {
            extent.shape.push(number(&mut rest).ok_or_else(|| invalid_at(rest))?);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(invalid_at(rest)) }
}

/// Writes the reply for a failed batch.
pub(crate) fn write_failure(packet: &mut Vec<u8>, batch: u64, error: &EngineError) {
    let other;
    let (kind, text) = match error {
        EngineError::Failed(text) => (FAILED, text),
        EngineError::Died(text) => (BROKEN, text),
        EngineError::DeviceMemory(text) => (OUT_OF_MEMORY, text),
        EngineError::InvalidRows(rows) => {
            begin(packet, batch, INVALID_ROWS);
            return put_rows(packet, rows);
        }
        error => {
            other = error.to_string();
            (FAILED, &other)
        }
    };
    begin(packet, batch, kind);
    packet.extend_from_slice(cut(text, TEXT));
}

/// Appends as many rows as fit into a packet.
fn put_rows(packet: &mut Vec<u8>, rows: &[InvalidRow]) {
    for InvalidRow { row, reason } in rows {
        let reason = cut(reason, ROW_TEXT);
        if packet.len() + 2 * NUMBER + reason.len() > PACKET {
            break;
        }
        put_number(packet, *row);
        put_number(packet, reason.len());
        packet.extend_from_slice(reason);
    }
}

fn read_rows(mut rest: &[u8]) -> Option<Vec<InvalidRow>> {
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (row, length) = (number(&mut rest)?, number(&mut rest)?);
        let (reason, after) = rest.split_at_checked(length)?;
        rest = after;
        rows.push(InvalidRow { row, reason: String::from_utf8_lossy(reason).into_owned() });
    }
    Some(rows)
}

fn cut(text: &str, most: usize) -> &[u8] {
    text.as_bytes().get(..most).unwrap_or(text.as_bytes())
}

/// Parses a reply and the number of its batch; the extents of the outputs go into `outputs`.
pub(crate) fn read_reply(packet: &[u8], outputs: &mut [Extent]) -> Result<(u64, BatchReply), InvalidPacket> {
    let (batch, rest) = packet.split_first_chunk::<NUMBER>().ok_or(InvalidPacket(0))?;
    let (kind, rest) = rest.split_first().ok_or(InvalidPacket(NUMBER))?;
    let text = || String::from_utf8_lossy(rest).into_owned();
    let reply = match *kind {
        DONE => read_extents(rest, outputs)
            .map(|()| BatchReply::Done)
            .map_err(|InvalidPacket(position)| InvalidPacket(position + NUMBER + 1))?,
        FAILED => BatchReply::Failed(text()),
        BROKEN => BatchReply::Broken(text()),
        OUT_OF_MEMORY => BatchReply::OutOfMemory(text()),
        INVALID_ROWS => BatchReply::InvalidRows(read_rows(rest).ok_or(InvalidPacket(NUMBER + 1))?),
        _ => return Err(InvalidPacket(NUMBER)),
    };
    Ok((u64::from_le_bytes(*batch), reply))
}

fn put_number(packet: &mut Vec<u8>, number: usize) {
    packet.extend_from_slice(&(number as u64).to_le_bytes());
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (bytes, after) = rest.split_first_chunk::<NUMBER>()?;
    *rest = after;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        BatchReply, InvalidPacket, PACKET, put_extents, read_extents, read_reply, read_request,
        write_extents, write_failure,
    };
    use crate::{EngineError, Extent, InvalidRow};

    fn extents() -> impl Strategy<Value = Vec<Extent>> {
        let extent = (any::<usize>(), proptest::collection::vec(any::<usize>(), 0..6));
        proptest::collection::vec(extent.prop_map(|(bytes, shape)| Extent { shape, bytes }), 0..5)
    }

    proptest! {
        #[test]
        fn extents_round_trip(extents in extents()) {
            let mut packet = Vec::new();
            put_extents(&mut packet, &extents);
            let mut read = vec![Extent { shape: vec![1, 2], bytes: 3 }; extents.len()];
            read_extents(&packet, &mut read).unwrap();
            prop_assert_eq!(read, extents);
        }

        #[test]
        fn requests_and_replies_have_the_number_of_their_batch(batch: u64, extents in extents()) {
            let mut packet = Vec::new();
            write_extents(&mut packet, batch, &extents);
            let mut read = vec![Extent::default(); extents.len()];
            prop_assert_eq!(read_request(&packet, &mut read), Ok(batch));
            prop_assert_eq!(read_reply(&packet, &mut read), Ok((batch, BatchReply::Done)));
            prop_assert_eq!(read, extents);
            write_failure(&mut packet, batch, &EngineError::Failed("text".to_owned()));
            prop_assert_eq!(read_reply(&packet, &mut []), Ok((batch, BatchReply::Failed("text".to_owned()))));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut outputs = vec![Extent::default(); 3];
            let _ = read_reply(&packet, &mut outputs);
            prop_assert!(outputs.iter().all(|output| output.shape.len() <= 25));
        }

        #[test]
        fn a_truncated_or_longer_packet_is_invalid(extents in extents(), cut in 1_usize..8) {
            let mut packet = Vec::new();
            write_extents(&mut packet, 7, &extents);
            let mut read = vec![Extent::default(); extents.len()];
            packet.push(0);
            prop_assert!(read_reply(&packet, &mut read).is_err());
            packet.truncate(packet.len().saturating_sub(1 + cut));
            prop_assert!(read_reply(&packet, &mut read).is_err());
        }
    }

    #[test]
    fn a_rank_beyond_the_packet_is_rejected_before_allocation() {
        let mut packet = vec![0; 8];
        packet.extend_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read_extents(&packet, &mut [Extent::default()]), Err(InvalidPacket(16)));
    }

    #[test]
    fn a_text_of_any_length_fits_into_a_packet() {
        let mut packet = Vec::new();
        write_failure(&mut packet, 1, &EngineError::Died("ä".repeat(PACKET)));
        assert!(packet.len() < PACKET);
        let reply = read_reply(&packet, &mut []);
        assert!(matches!(reply, Ok((1, BatchReply::Broken(text))) if text.starts_with('ä')));
    }

    #[test]
    fn as_many_invalid_rows_are_reported_as_fit_into_a_packet() {
        let rows = (0..1000).map(|row| InvalidRow { row, reason: "ä".repeat(row) }).collect::<Vec<_>>();
        let mut packet = Vec::new();
        write_failure(&mut packet, 1, &EngineError::InvalidRows(rows.clone()));
        assert!(packet.len() <= PACKET);
        let Ok((1, BatchReply::InvalidRows(read))) = read_reply(&packet, &mut []) else { panic!() };
        assert!(read.len() > 100 && read.len() < rows.len());
        assert_eq!(read[..100], rows[..100]);
        packet.pop();
        assert!(read_reply(&packet, &mut []).is_err());
    }

    #[test]
    fn a_failure_keeps_its_kind() {
        let text = || "text".to_owned();
        let rows = || vec![InvalidRow { row: 3, reason: text() }];
        for (error, reply) in [
            (EngineError::InvalidRows(rows()), BatchReply::InvalidRows(rows())),
            (EngineError::Failed(text()), BatchReply::Failed(text())),
            (EngineError::Died(text()), BatchReply::Broken(text())),
            (EngineError::DeviceMemory(text()), BatchReply::OutOfMemory(text())),
        ] {
            let mut packet = Vec::new();
            write_failure(&mut packet, 2, &error);
            assert_eq!(read_reply(&packet, &mut []), Ok((2, reply)));
        }
    }
}
