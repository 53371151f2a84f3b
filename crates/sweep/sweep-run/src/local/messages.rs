//! JSON lines over the pipe from another process.

use cudock_base::bug::Parts;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde::de::DeserializeOwned;

/// Messages that arrive over a pipe.
#[derive(Debug)]
pub(crate) struct MessageReader<F> {
    source: F,
    buffer: Vec<u8>,
    /// Bytes at the beginning of the buffer without a line feed.
    searched: usize,
    is_closed: bool,
}

impl<F: AsFd> MessageReader<F> {
    pub(crate) fn new(source: F) -> Self {
        Self { source, buffer: Vec::new(), searched: 0, is_closed: false }
    }

    /// Waits for the next message; `None` if the other process is gone.
    pub(crate) fn wait<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(message) = self.parse()? {
                return Ok(Some(message));
            }
            if self.is_closed {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// The messages that have arrived, after a poll has reported some.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Vec<T> {
        if self.read().is_err() {
            self.is_closed = true;
        }
        std::iter::from_fn(|| self.parse().ok().flatten()).collect()
    }

    /// Whether the other process is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0_u8; 8 << 10];
        match rustix::io::read(&self.source, bytes.as_mut_slice()) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.buffer.extend_from_slice(bytes.part(..count)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let new = self.buffer.part(self.searched..);
        let Some(end) = memchr::memchr(b'\n', new) else {
            self.searched = self.buffer.len();
            return Ok(None);
        };
        let rest = self.buffer.split_off(self.searched + end + 1);
        let line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        Ok(Some(serde_json::from_slice(&line)?))
    }
}

impl<F: AsFd> AsFd for MessageReader<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn messages_are_whole_however_they_arrive() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut messages = MessageReader::new(reader);
        for (part, complete) in
            [("[1", vec![]), ("]\n[2]\n[", vec![vec![1], vec![2]]), ("3]\n", vec![vec![3]])]
        {
            writer.write_all(part.as_bytes()).unwrap();
            assert_eq!(messages.receive::<Vec<i32>>(), complete, "{part}");
        }
        let long = format!("[{}1]\n", "1,".repeat(30_000));
        writer.write_all(long.as_bytes()).unwrap();
        drop(writer);
        assert_eq!(messages.wait::<Vec<i32>>().unwrap().unwrap().len(), 30_001);
        assert_eq!(messages.wait::<Vec<i32>>().unwrap(), None);
        assert!(messages.is_closed());
    }
}
