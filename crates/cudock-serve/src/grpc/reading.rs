//! Reading the messages of a call as they come.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use tokio::time::{Sleep, sleep};

use super::encoding::Encoding;
use super::frames::{Deframer, RawMessage};
use super::holding::Holding;
use super::status::{Code, Status};
use crate::ServeError;

/// Compressed messages longer than this are unpacked beside the thread that serves connections: a few kilobytes can
/// hold many megabytes.
const UNPACKED_ASIDE: usize = 16 << 10;

/// Whether a client owes a message, or may take its time before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Owed,
    Leisure,
}

/// The messages of a body. A client that begins a message must go on with it.
pub(crate) struct Messages<B> {
    body: Pin<Box<B>>,
    deframer: Deframer,
    pace: Pace,
    patience: Duration,
    /// When a client that sends nothing is given up.
    give_up: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl<B> Messages<B>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    /// Of that body, each of at most `limit` bytes; `patience` is how long a client may pause.
    pub(crate) fn new(body: B, limit: usize, pace: Pace, patience: Duration) -> Self {
        let deframer = Deframer::new(limit);
        Self { body: Box::pin(body), deframer, pace, patience, give_up: None, ended: false }
    }

    /// The next message; none at the end of the body. May be dropped and asked for again.
    pub(crate) async fn next<F, H>(
        &mut self,
        holding: &mut Holding<F, H>,
    ) -> Result<Option<RawMessage>, Status>
    where
        F: FnMut(usize) -> Result<H, ServeError>,
    {
        poll_fn(|context| self.poll_next(context, holding)).await
    }

    /// The one message of a call that takes one.
    pub(crate) async fn only<F, H>(mut self, holding: &mut Holding<F, H>) -> Result<RawMessage, Status>
    where
        F: FnMut(usize) -> Result<H, ServeError>,
    {
        let wrong_number =
            |found| Status::new(Code::Unimplemented, format!("the call takes one message, not {found}"));
        let message = self.next(holding).await?.ok_or_else(|| wrong_number("none"))?;
        match self.next(holding).await? {
            None => Ok(message),
            Some(_) => Err(wrong_number("several")),
        }
    }

    /// Whether nothing of a further message has come.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.deframer.is_between_messages()
    }

    fn poll_next<F, H>(
        &mut self,
        context: &mut Context<'_>,
        holding: &mut Holding<F, H>,
    ) -> Poll<Result<Option<RawMessage>, Status>>
    where
        F: FnMut(usize) -> Result<H, ServeError>,
    {
        loop {
            if let Some(message) = self.deframer.next()? {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.ended {
                let broken = || Status::invalid("the request ends inside a message");
                return Poll::Ready(if self.is_between_messages() { Ok(None) } else { Err(broken()) });
            }
            let Poll::Ready(frame) = self.body.as_mut().poll_frame(context) else {
                ready!(self.poll_give_up(context));
                return Poll::Ready(Err(ServeError::BodyTooSlow.into()));
            };
            self.give_up = None;
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
                        self.deframer.push(piece);
                        holding.cover(self.deframer.buffered())?;
                    }
                }
            }
        }
    }

    fn poll_give_up(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.pace == Pace::Leisure && self.is_between_messages() {
            return Poll::Pending;
        }
        let patience = self.patience;
        self.give_up.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(context)
    }
}

/// The message behind what came.
pub(crate) async fn unpack(message: RawMessage, encoding: Encoding, limit: usize) -> Result<Bytes, Status> {
    if !message.compressed || message.bytes.len() <= UNPACKED_ASIDE {
        return message.decoded(encoding, limit);
    }
    let unpacked = tokio::task::spawn_blocking(move || message.decoded(encoding, limit));
    unpacked.await.unwrap_or_else(|error| Err(Status::new(Code::Internal, error.to_string())))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

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

    fn free() -> Holding<impl FnMut(usize) -> Result<(), ServeError>, ()> {
        Holding::new(|_| Ok(()))
    }

    fn whole(body: &'static [u8]) -> Messages<Full<Bytes>> {
        Messages::new(Full::new(Bytes::from_static(body)), 100, Pace::Owed, PATIENCE)
    }

    fn from(client: &Client, pace: Pace) -> Messages<Client> {
        Messages::new(client.clone(), 100, pace, PATIENCE)
    }

    #[tokio::test]
    async fn a_call_of_one_message_gives_it() {
        let message = whole(b"\0\0\0\0\x02hi").only(&mut free()).await.unwrap();
        assert_eq!(message.bytes, "hi");
    }

    #[tokio::test]
    async fn a_call_of_one_message_with_another_number_is_refused() {
        for body in [&b""[..], b"\0\0\0\0\x01a\0\0\0\0\x01b"] {
            assert_eq!(whole(body).only(&mut free()).await.unwrap_err().code, Code::Unimplemented);
        }
    }

    #[tokio::test]
    async fn a_request_that_ends_inside_a_message_is_refused() {
        for body in [&b"\0\0"[..], b"\0\0\0\0\x02h", b"\0\0\0\0\x01a\0"] {
            assert_eq!(whole(body).only(&mut free()).await.unwrap_err().code, Code::InvalidArgument);
        }
    }

    #[tokio::test]
    async fn a_client_that_stops_inside_a_message_is_given_up() {
        for pace in [Pace::Owed, Pace::Leisure] {
            let client = Client::default();
            client.send(Sent::Data(b"\0\0\0\0\x02h"));
            let given_up = from(&client, pace).next(&mut free()).await.unwrap_err();
            assert_eq!(given_up, ServeError::BodyTooSlow.into());
        }
    }

    #[tokio::test]
    async fn a_client_that_owes_a_message_and_sends_nothing_is_given_up() {
        let given_up = from(&Client::default(), Pace::Owed).only(&mut free()).await.unwrap_err();
        assert_eq!(given_up, ServeError::BodyTooSlow.into());
    }

    #[tokio::test]
    async fn a_client_may_take_its_time_between_the_messages_of_a_stream() {
        let client = Client::default();
        let (mut messages, mut holding) = (from(&client, Pace::Leisure), free());
        client.send(Sent::Data(b"\0\0\0\0\x01a"));
        assert_eq!(messages.next(&mut holding).await.unwrap().unwrap().bytes, "a");
        assert!(tokio::time::timeout(PATIENCE * 3, messages.next(&mut holding)).await.is_err());
        client.send(Sent::Data(b"\0\0\0\0\x01b"));
        assert_eq!(messages.next(&mut holding).await.unwrap().unwrap().bytes, "b");
        client.send(Sent::End);
        assert_eq!(messages.next(&mut holding).await, Ok(None));
    }

    #[tokio::test]
    async fn a_message_is_counted_against_the_servers_memory_as_it_comes() {
        let client = Client::default();
        client.send(Sent::Data(b"\0\0\0\0\x50 the first of eighty bytes"));
        let full = || ServeError::Full { retry_after: Duration::from_millis(1) };
        let mut holding = Holding::new(|bytes| if bytes > 20 { Err(full()) } else { Ok(()) });
        assert_eq!(from(&client, Pace::Owed).next(&mut holding).await, Err(full().into()));
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_told_from_an_end() {
        let client = Client::default();
        client.send(Sent::Data(b"\0\0"));
        client.send(Sent::Reset);
        assert_eq!(from(&client, Pace::Owed).next(&mut free()).await.unwrap_err().code, Code::Unavailable);
    }

    #[tokio::test]
    async fn long_compressed_messages_are_unpacked_as_short_ones_are() {
        for length in [100_usize, 300_000] {
            // Bytes that do not compress well, so that the long one goes the other way.
            let message: Vec<u8> =
                (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
            let bytes = Bytes::from(Encoding::Gzip.compress(&[message.clone().into()]).unwrap());
            let raw = RawMessage { compressed: true, bytes };
            assert_eq!(unpack(raw, Encoding::Gzip, length).await.unwrap(), message);
        }
    }
}
