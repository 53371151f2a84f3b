//! A response body that is written by a task.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use cudock_base::lock;
use hyper::body::{Body, Frame};

use super::status::GrpcStatus;

/// The sink into which a task writes chunks of the body.
#[derive(Clone, Default)]
pub(crate) struct MessageSink(Arc<Mutex<VecDeque<Bytes>>>);

impl MessageSink {
    pub(crate) fn put(&self, pieces: Vec<Bytes>) {
        lock(&self.0).extend(pieces);
    }

    fn take(&self) -> Option<Bytes> {
        lock(&self.0).pop_front()
    }
}

/// A body: what the task writes, and then its status as trailers. The task is polled only while the body is, so it
/// stops for a client that does not read, and ends with the client.
pub(crate) struct StreamBody<T> {
    task: Option<Pin<Box<T>>>,
    sink: MessageSink,
    status: Option<GrpcStatus>,
}

impl<T: Future<Output = GrpcStatus>> StreamBody<T> {
    pub(crate) fn by(task: impl FnOnce(MessageSink) -> T) -> Self {
        let sink = MessageSink::default();
        Self { task: Some(Box::pin(task(sink.clone()))), sink, status: None }
    }
}

impl<T: Future<Output = GrpcStatus>> Body for StreamBody<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(piece) = self.sink.take() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            let Some(task) = &mut self.task else {
                return Poll::Ready(self.status.take().map(|status| Ok(Frame::trailers(status.trailers()))));
            };
            match task.as_mut().poll(context) {
                Poll::Ready(status) => {
                    self.status = Some(status);
                    self.task = None;
                }
                Poll::Pending => match self.sink.take() {
                    Some(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                    None => return Poll::Pending,
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.task.is_none() && self.status.is_none()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::super::status::GrpcCode;
    use super::*;

    #[tokio::test]
    async fn messages_are_followed_by_the_status() {
        let body = StreamBody::by(|sink| async move {
            sink.put(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]);
            tokio::task::yield_now().await;
            sink.put(vec![Bytes::from_static(b"c")]);
            GrpcStatus::new(GrpcCode::Unavailable, "enough")
        });
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "14");
        assert_eq!(collected.to_bytes(), "abc");
    }

    #[tokio::test]
    async fn the_task_stops_while_the_client_does_not_read() {
        let (sink, watched) = (MessageSink::default(), MessageSink::default());
        let writer = watched.clone();
        let mut body = StreamBody::by(|_| async move {
            for _ in 0..3 {
                writer.put(vec![Bytes::from_static(b"x")]);
                tokio::task::yield_now().await;
            }
            GrpcStatus::OK
        });
        body.sink = sink;
        assert_eq!(watched.take(), None);
        let waker = std::task::Waker::noop();
        let _ = Pin::new(&mut body).poll_frame(&mut Context::from_waker(waker));
        assert!(watched.take().is_some());
        assert_eq!(watched.take(), None);
    }
}
