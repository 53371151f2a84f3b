//! Sockets between a server and its engine process.
//!
//! A control stream carries the settings, the reply and the file descriptors of every lane; its end shows either side
//! that the other one is gone. Each lane has a packet socket.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use cudock_tensor::Signature;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, socketpair,
    sockopt,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::DeviceInfo;

/// Largest message on the control stream, in bytes.
const MESSAGE: u32 = 64 << 20;
/// File descriptors per packet; the kernel allows 253.
const DESCRIPTORS: usize = 64;

/// The engine process's reply after loading the model.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum LoadReply {
    Ready { process: u32, signature: Signature, device: Box<DeviceInfo> },
    Library { library: PathBuf, reason: String },
    Load { reason: String },
    NoGpu { reason: String },
}

/// A request on the control stream to cancel a batch.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct CancelRequest {
    pub(crate) lane: usize,
    pub(crate) batch: u64,
}

pub(crate) fn send_message(control: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MESSAGE);
    let length = length.ok_or_else(|| invalid("a message of more than 64 MiB"))?;
    control.write_all(&length.to_le_bytes())?;
    control.write_all(&text)
}

pub(crate) fn receive_message<T: DeserializeOwned>(control: &mut UnixStream) -> io::Result<T> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MESSAGE {
        return Err(invalid("a message of more than 64 MiB"));
    }
    let mut text = Vec::new();
    let read = control.take(u64::from(length)).read_to_end(&mut text)?;
    if u32::try_from(read) != Ok(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Sends file descriptors; the other side gets duplicates.
pub(crate) fn send_descriptors(control: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    for some in descriptors.chunks(DESCRIPTORS) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(some)) {
            return Err(invalid("descriptors do not fit into a packet"));
        }
        sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

pub(crate) fn receive_descriptors(control: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut descriptors = Vec::new();
    while descriptors.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let received = retry_on_intr(|| {
            recvmsg(control, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
    }
    if descriptors.len() == count { Ok(descriptors) } else { Err(invalid("more descriptors than expected")) }
}

/// Waits until the other side has sent something or is gone; returns whether it is still there.
pub(crate) fn wait(control: &UnixStream) -> bool {
    let mut byte = [0];
    retry_on_intr(|| recv(control, &mut byte, RecvFlags::PEEK)).is_ok_and(|(_, bytes)| bytes > 0)
}

/// One end of a lane's socket.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    limit: Option<Duration>,
}

impl PacketSocket {
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self::from_fd(ours), Self::from_fd(theirs)))
    }

    pub(crate) fn from_fd(socket: OwnedFd) -> Self {
        Self { socket, limit: None }
    }

    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        Ok(retry_on_intr(|| send(&self.socket, packet, SendFlags::NOSIGNAL)).map(drop)?)
    }

    /// Waits for a packet and returns its length: 0 if the other side is gone. `WouldBlock` if nothing arrives within
    /// the limit.
    pub(crate) fn receive(&mut self, packet: &mut [u8], limit: Option<Duration>) -> io::Result<usize> {
        if limit != self.limit {
            let timeout = limit.map(|limit| limit.max(Duration::from_millis(1)));
            sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, timeout)?;
            self.limit = limit;
        }
        match retry_on_intr(|| recv(&self.socket, &mut *packet, RecvFlags::empty())) {
            Err(Errno::CONNRESET) => Ok(0),
            received => Ok(received?.1),
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn any_number_of_descriptors_arrives_in_order() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let files: Vec<_> = (0..150_u8)
            .map(|number| {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(&[number]).unwrap();
                file.seek(SeekFrom::Start(0)).unwrap();
                file
            })
            .collect();
        send_descriptors(&ours, &files.iter().map(AsFd::as_fd).collect::<Vec<_>>()).unwrap();
        let received = receive_descriptors(&theirs, files.len()).unwrap();
        for (number, descriptor) in received.into_iter().enumerate() {
            let mut byte = [0];
            std::fs::File::from(descriptor).read_exact(&mut byte).unwrap();
            assert_eq!(usize::from(byte[0]), number);
        }
    }

    #[test]
    fn a_message_that_claims_too_much_or_is_truncated_is_rejected() {
        for (length, kind) in [(u32::MAX, io::ErrorKind::InvalidData), (8, io::ErrorKind::UnexpectedEof)] {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            ours.write_all(&length.to_le_bytes()).unwrap();
            ours.write_all(b"12").unwrap();
            drop(ours);
            assert_eq!(receive_message::<u32>(&mut theirs).unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn a_lane_waits_no_longer_than_its_limit_and_sees_the_other_end_close() {
        let (mut ours, theirs) = PacketSocket::pair().unwrap();
        let mut packet = [0; 16];
        let limit = Some(Duration::from_millis(2));
        assert_eq!(ours.receive(&mut packet, limit).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        theirs.send(b"four").unwrap();
        assert_eq!(ours.receive(&mut packet, limit).unwrap(), 4);
        drop(theirs);
        assert_eq!(ours.receive(&mut packet, None).unwrap(), 0);
        assert!(ours.send(b"x").is_err());
    }
}
