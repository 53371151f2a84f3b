//! Reading the messages of a call as they come.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;

use super::encoding::{Encoding, too_long};
use super::frames::{Deframer, RawMessage};
use super::status::{Code, Status};
use crate::ServeError;
use crate::aside::{Aside, INLINE};
use crate::memory::Reservation;
use crate::pace::Pace;

/// Whether a client owes a message, or may take its time before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Owed,
    Leisure,
}

/// The messages of a body. A client that begins a message must go on with it.
pub(crate) struct Messages<B> {
    body: Pin<Box<B>>,
    deframer: Deframer,
    turn: Turn,
    pace: Pace,
    received: usize,
    ended: bool,
}

impl<B> Messages<B>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    /// Of that body, each of at most `limit` bytes; `patience` is how long a client may pause.
    pub(crate) fn new(body: B, limit: usize, turn: Turn, patience: Duration) -> Self {
        let (deframer, pace) = (Deframer::new(limit), Pace::new(patience));
        Self { body: Box::pin(body), deframer, turn, pace, received: 0, ended: false }
    }

    /// The next message; none at the end of the body. May be dropped and asked for again.
    pub(crate) async fn next(
        &mut self,
        held: &mut Reservation,
        draining: impl Fn() -> bool,
    ) -> Result<Option<RawMessage>, Status> {
        poll_fn(|context| self.poll_next(context, held, &draining)).await
    }

    /// The one message of a call that takes one.
    pub(crate) async fn only(
        mut self,
        held: &mut Reservation,
        draining: impl Fn() -> bool,
    ) -> Result<RawMessage, Status> {
        let wrong_number =
            |found| Status::new(Code::Unimplemented, format!("the call takes one message, not {found}"));
        let message = self.next(held, &draining).await?.ok_or_else(|| wrong_number("none"))?;
        match self.next(held, &draining).await? {
            None => Ok(message),
            Some(_) => Err(wrong_number("several")),
        }
    }

    /// Whether nothing of a further message has come.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.deframer.is_between_messages()
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        held: &mut Reservation,
        draining: &impl Fn() -> bool,
    ) -> Poll<Result<Option<RawMessage>, Status>> {
        loop {
            if let Some(message) = self.deframer.next()? {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.ended {
                let broken = || Status::invalid("the request ends inside a message");
                return Poll::Ready(if self.is_between_messages() { Ok(None) } else { Err(broken()) });
            }
            let Poll::Ready(frame) = self.body.as_mut().poll_frame(context) else {
                if self.turn == Turn::Leisure && self.is_between_messages() {
                    self.pace.pause();
                    return Poll::Pending;
                }
                ready!(self.pace.poll_stalled(context, self.received, draining));
                return Poll::Ready(Err(ServeError::BodyTooSlow.into()));
            };
            match frame.transpose() {
                Err(error) => {
                    return Poll::Ready(Err(Status::new(
                        Code::Unavailable,
                        format!("the request broke off: {error}"),
                    )));
                }
                Ok(None) => self.ended = true,
                Ok(Some(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.received += piece.len();
                        self.deframer.push(piece);
                        held.cover(self.deframer.buffered())?;
                    }
                }
            }
        }
    }
}

/// The message behind what came, and what it holds: a compressed one that is or grows long is unpacked on a thread of
/// its own.
pub(crate) async fn unpack(
    aside: &Aside,
    message: RawMessage,
    encoding: Encoding,
    limit: usize,
    mut held: Reservation,
) -> Result<(Bytes, Reservation), Status> {
    if !message.compressed {
        return Ok((message.bytes, held));
    }
    let packed = message.bytes;
    if packed.len() <= INLINE {
        match encoding.decompress(&packed, limit.min(INLINE), |bytes| held.cover(bytes)) {
            Err(status) if limit > INLINE && status == too_long(INLINE) => {}
            outcome => return outcome.map(|bytes| (bytes, held)),
        }
    }
    let unpacking = move || {
        let outcome = encoding.decompress(&packed, limit, |bytes| held.cover(bytes));
        drop(packed);
        if let Ok(bytes) = &outcome {
            held.shrink(bytes.len());
        }
        Ok(outcome.map(|bytes| (bytes, held)))
    };
    aside.run(unpacking).await?
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;
    use crate::memory::Budget;

    const PATIENCE: Duration = Duration::from_millis(20);

    /// A client: what it has sent, and silence after that.
    #[derive(Clone, Default)]
    pub(crate) struct Client(Arc<Mutex<VecDeque<Sent>>>);

    pub(crate) enum Sent {
        Data(&'static [u8]),
        End,
        Reset,
    }

    impl Client {
        pub(crate) fn send(&self, sent: Sent) {
            self.0.lock().unwrap().push_back(sent);
        }
    }

    impl Body for Client {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            match self.0.lock().unwrap().pop_front() {
                Some(Sent::Data(data)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data))))),
                Some(Sent::Reset) => Poll::Ready(Some(Err("reset"))),
                Some(Sent::End) => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn free() -> Reservation {
        Reservation::new(&Arc::new(Budget::new(1 << 30)))
    }

    fn running() -> bool {
        false
    }

    fn whole(body: &'static [u8]) -> Messages<Full<Bytes>> {
        Messages::new(Full::new(Bytes::from_static(body)), 100, Turn::Owed, PATIENCE)
    }

    fn from(client: &Client, turn: Turn) -> Messages<Client> {
        Messages::new(client.clone(), 100, turn, PATIENCE)
    }

    #[tokio::test]
    async fn a_call_of_one_message_gives_it() {
        let message = whole(b"\0\0\0\0\x02hi").only(&mut free(), running).await.unwrap();
        assert_eq!(message.bytes, "hi");
    }

    #[tokio::test]
    async fn a_call_of_one_message_with_another_number_is_refused() {
        for body in [&b""[..], b"\0\0\0\0\x01a\0\0\0\0\x01b"] {
            assert_eq!(whole(body).only(&mut free(), running).await.unwrap_err().code, Code::Unimplemented);
        }
    }

    #[tokio::test]
    async fn a_request_that_ends_inside_a_message_is_refused() {
        for body in [&b"\0\0"[..], b"\0\0\0\0\x02h", b"\0\0\0\0\x01a\0"] {
            assert_eq!(whole(body).only(&mut free(), running).await.unwrap_err().code, Code::InvalidArgument);
        }
    }

    #[tokio::test]
    async fn a_client_that_stops_inside_a_message_is_given_up() {
        for turn in [Turn::Owed, Turn::Leisure] {
            let client = Client::default();
            client.send(Sent::Data(b"\0\0\0\0\x02h"));
            let given_up = from(&client, turn).next(&mut free(), running).await.unwrap_err();
            assert_eq!(given_up, ServeError::BodyTooSlow.into());
        }
    }

    #[tokio::test]
    async fn a_client_that_owes_a_message_and_sends_nothing_is_given_up() {
        let given_up = from(&Client::default(), Turn::Owed).only(&mut free(), running).await.unwrap_err();
        assert_eq!(given_up, ServeError::BodyTooSlow.into());
    }

    #[tokio::test]
    async fn a_client_may_take_its_time_between_the_messages_of_a_stream() {
        let client = Client::default();
        let (mut messages, mut holding) = (from(&client, Turn::Leisure), free());
        client.send(Sent::Data(b"\0\0\0\0\x01a"));
        assert_eq!(messages.next(&mut holding, running).await.unwrap().unwrap().bytes, "a");
        let silence = messages.next(&mut holding, running);
        assert!(tokio::time::timeout(PATIENCE * 3, silence).await.is_err());
        client.send(Sent::Data(b"\0\0\0\0\x01b"));
        assert_eq!(messages.next(&mut holding, running).await.unwrap().unwrap().bytes, "b");
        client.send(Sent::End);
        assert_eq!(messages.next(&mut holding, running).await, Ok(None));
    }

    #[tokio::test]
    async fn a_message_is_counted_against_the_servers_memory_as_it_comes() {
        let client = Client::default();
        client.send(Sent::Data(b"\0\0\0\0\x50 the first of eighty bytes"));
        let mut held = Reservation::new(&Arc::new(Budget::new(20)));
        let refused = from(&client, Turn::Owed).next(&mut held, running).await.unwrap_err();
        assert_eq!(refused.code, Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_told_from_an_end() {
        let client = Client::default();
        client.send(Sent::Data(b"\0\0"));
        client.send(Sent::Reset);
        assert_eq!(
            from(&client, Turn::Owed).next(&mut free(), running).await.unwrap_err().code,
            Code::Unavailable
        );
    }

    #[tokio::test]
    async fn long_compressed_messages_are_unpacked_as_short_ones_are() {
        let aside = Aside::new(1);
        for length in [100_usize, 300_000] {
            // Bytes that do not compress well, so that the long one goes the other way.
            let message: Vec<u8> =
                (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
            let bytes = Bytes::from(Encoding::Gzip.compress(&[message.clone().into()]).unwrap());
            let raw = RawMessage { compressed: true, bytes };
            let (unpacked, _held) = unpack(&aside, raw, Encoding::Gzip, length, free()).await.unwrap();
            assert_eq!(unpacked, message);
        }
    }
}
