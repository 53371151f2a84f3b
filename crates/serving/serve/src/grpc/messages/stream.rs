//! Reads the messages of a call as they arrive.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use cudock_server::{HttpRejection, MAX_INLINE_PARSE, Reservation, StallDetector, WorkerPool};
use hyper::body::Body;

use crate::grpc::encoding::{GrpcEncoding, too_long};
use crate::grpc::frames::{Deframer, RawMessage};
use crate::grpc::status::{GrpcCode, GrpcStatus};

/// Whether the next message must arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageTiming {
    Required,
    Optional,
}

/// The messages of a body. A client that has started a message must finish it in time.
pub(crate) struct MessageStream<B> {
    body: Pin<Box<B>>,
    deframer: Deframer,
    turn: MessageTiming,
    stall: StallDetector,
    received: usize,
    ended: bool,
}

impl<B> MessageStream<B>
where
    B: Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    /// Creates a stream of messages of at most `limit` bytes; `patience` is the longest pause of the client.
    pub(crate) fn new(body: B, limit: usize, turn: MessageTiming, patience: Duration) -> Self {
        let (deframer, stall) = (Deframer::new(limit), StallDetector::new(patience));
        Self { body: Box::pin(body), deframer, turn, stall, received: 0, ended: false }
    }

    /// The next message; `None` at the end of the body. Cancel-safe.
    pub(crate) async fn next(
        &mut self,
        held: &mut Reservation,
        draining: impl Fn() -> bool,
    ) -> Result<Option<RawMessage>, GrpcStatus> {
        poll_fn(|context| self.poll_next(context, held, &draining)).await
    }

    /// The message of a unary call.
    pub(crate) async fn only(
        mut self,
        held: &mut Reservation,
        draining: impl Fn() -> bool,
    ) -> Result<RawMessage, GrpcStatus> {
        let wrong_number = |found| GrpcStatus::unimplemented(format!("expected one message, found {found}"));
        let message = self.next(held, &draining).await?.ok_or_else(|| wrong_number("none"))?;
        match self.next(held, &draining).await? {
            None => Ok(message),
            Some(_) => Err(wrong_number("several")),
        }
    }

    /// Whether nothing of another message has arrived.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.deframer.is_between_messages()
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        held: &mut Reservation,
        draining: &impl Fn() -> bool,
    ) -> Poll<Result<Option<RawMessage>, GrpcStatus>> {
        loop {
            if let Some(message) = self.deframer.next()? {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.ended {
                let broken = || GrpcStatus::invalid("the request ends inside a message");
                return Poll::Ready(if self.is_between_messages() { Ok(None) } else { Err(broken()) });
            }
            let Poll::Ready(frame) = self.body.as_mut().poll_frame(context) else {
                if self.turn == MessageTiming::Optional && self.is_between_messages() {
                    self.stall.pause();
                    return Poll::Pending;
                }
                ready!(self.stall.poll_stalled(context, self.received, draining));
                return Poll::Ready(Err(HttpRejection::BodyTooSlow.into()));
            };
            match frame.transpose() {
                Err(error) => {
                    let message = format!("the request was interrupted: {error}");
                    return Poll::Ready(Err(GrpcStatus::new(GrpcCode::Unavailable, message)));
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

/// Decompresses a message; a long one on a worker thread.
pub(crate) async fn decode_message(
    workers: &WorkerPool,
    message: RawMessage,
    encoding: GrpcEncoding,
    limit: usize,
    mut held: Reservation,
) -> Result<(Bytes, Reservation), GrpcStatus> {
    if !message.compressed {
        return Ok((message.bytes, held));
    }
    let compressed = message.bytes;
    if compressed.len() <= MAX_INLINE_PARSE {
        match encoding.decompress(&compressed, limit.min(MAX_INLINE_PARSE), |bytes| held.cover(bytes)) {
            Err(status) if limit > MAX_INLINE_PARSE && status == too_long(MAX_INLINE_PARSE) => {}
            outcome => return outcome.map(|bytes| (bytes, held)),
        }
    }
    let unpacking = move || {
        let outcome = encoding.decompress(&compressed, limit, |bytes| held.cover(bytes));
        drop(compressed);
        if let Ok(bytes) = &outcome {
            held.shrink(bytes.len());
        }
        outcome.map(|bytes| (bytes, held))
    };
    workers.run(unpacking).await?
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use cudock_server::Budget;
    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    /// A client: what it has sent, and silence after that.
    #[derive(Clone, Default)]
    pub(crate) struct ScriptedClient(Arc<Mutex<VecDeque<Sent>>>);

    pub(crate) enum Sent {
        Data(&'static [u8]),
        End,
        Reset,
    }

    impl ScriptedClient {
        pub(crate) fn send(&self, sent: Sent) {
            self.0.lock().unwrap().push_back(sent);
        }
    }

    impl Body for ScriptedClient {
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

    fn whole(body: &'static [u8]) -> MessageStream<Full<Bytes>> {
        MessageStream::new(Full::new(Bytes::from_static(body)), 100, MessageTiming::Required, PATIENCE)
    }

    fn from(client: &ScriptedClient, turn: MessageTiming) -> MessageStream<ScriptedClient> {
        MessageStream::new(client.clone(), 100, turn, PATIENCE)
    }

    #[tokio::test]
    async fn a_unary_call_has_one_whole_message() {
        let message = whole(b"\0\0\0\0\x02hi").only(&mut free(), running).await.unwrap();
        assert_eq!(message.bytes, "hi");
        for (body, code) in [
            (&b""[..], GrpcCode::Unimplemented),
            (b"\0\0\0\0\x01a\0\0\0\0\x01b", GrpcCode::Unimplemented),
            (b"\0\0", GrpcCode::InvalidArgument),
            (b"\0\0\0\0\x02h", GrpcCode::InvalidArgument),
            (b"\0\0\0\0\x01a\0", GrpcCode::InvalidArgument),
        ] {
            assert_eq!(whole(body).only(&mut free(), running).await.unwrap_err().code, code, "{body:?}");
        }
    }

    #[tokio::test]
    async fn a_client_that_stops_inside_a_message_times_out() {
        for turn in [MessageTiming::Required, MessageTiming::Optional] {
            let client = ScriptedClient::default();
            client.send(Sent::Data(b"\0\0\0\0\x02h"));
            let error = from(&client, turn).next(&mut free(), running).await.unwrap_err();
            assert_eq!(error, HttpRejection::BodyTooSlow.into());
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_no_required_message_times_out() {
        let silent = from(&ScriptedClient::default(), MessageTiming::Required);
        let error = silent.only(&mut free(), running).await.unwrap_err();
        assert_eq!(error, HttpRejection::BodyTooSlow.into());
    }

    #[tokio::test]
    async fn a_client_may_pause_between_the_messages_of_a_stream() {
        let client = ScriptedClient::default();
        let (mut messages, mut holding) = (from(&client, MessageTiming::Optional), free());
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
    async fn a_message_counts_against_the_memory_budget_as_it_arrives() {
        let client = ScriptedClient::default();
        client.send(Sent::Data(b"\0\0\0\0\x50 the first of eighty bytes"));
        let mut held = Reservation::new(&Arc::new(Budget::new(20)));
        let refused = from(&client, MessageTiming::Required).next(&mut held, running).await.unwrap_err();
        assert_eq!(refused.code, GrpcCode::ResourceExhausted);
    }

    #[tokio::test]
    async fn a_broken_connection_is_an_error() {
        let client = ScriptedClient::default();
        client.send(Sent::Data(b"\0\0"));
        client.send(Sent::Reset);
        let error = from(&client, MessageTiming::Required).next(&mut free(), running).await.unwrap_err();
        assert_eq!(error.code, GrpcCode::Unavailable);
    }

    #[tokio::test]
    async fn short_and_long_compressed_messages_are_decompressed() {
        let workers = WorkerPool::new(1);
        for length in [100_usize, 300_000] {
            // Data that does not compress well, so that the long message takes the other path.
            let message: Vec<u8> =
                (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
            let bytes = Bytes::from(GrpcEncoding::Gzip.compress(&[message.clone().into()]).unwrap());
            let raw = RawMessage { compressed: true, bytes };
            let (unpacked, _held) =
                decode_message(&workers, raw, GrpcEncoding::Gzip, length, free()).await.unwrap();
            assert_eq!(unpacked, message);
        }
    }
}
