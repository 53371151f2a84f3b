//! A body that a task writes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::status::Status;
use crate::reply::lock;

/// Where a task puts pieces of the body it writes.
#[derive(Clone, Default)]
pub(crate) struct Outbox(Arc<Mutex<VecDeque<Bytes>>>);

impl Outbox {
    /// Puts the pieces of a message.
    pub(crate) fn put(&self, pieces: Vec<Bytes>) {
        lock(&self.0).extend(pieces);
    }

    /// Whether all that was put has been taken.
    fn take(&self) -> Option<Bytes> {
        lock(&self.0).pop_front()
    }
}

/// The body: what the task puts, and then its status as trailers. The task runs only while the body is asked for
/// more, so it stands still for a client that does not read, and ends with the client.
pub(crate) struct Written<T> {
    task: Option<Pin<Box<T>>>,
    outbox: Outbox,
    status: Option<Status>,
}

impl<T: Future<Output = Status>> Written<T> {
    /// The body that the task made by `task` writes.
    pub(crate) fn by(task: impl FnOnce(Outbox) -> T) -> Self {
        let outbox = Outbox::default();
        Self { task: Some(Box::pin(task(outbox.clone()))), outbox, status: None }
    }
}

impl<T: Future<Output = Status>> Body for Written<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(piece) = self.outbox.take() {
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
                Poll::Pending => match self.outbox.take() {
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

    use super::super::status::Code;
    use super::*;

    #[tokio::test]
    async fn what_the_task_puts_is_followed_by_its_status() {
        let body = Written::by(|outbox| async move {
            outbox.put(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]);
            tokio::task::yield_now().await;
            outbox.put(vec![Bytes::from_static(b"c")]);
            Status::new(Code::Unavailable, "enough")
        });
        let collected = body.collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "14");
        assert_eq!(collected.to_bytes(), "abc");
    }

    #[tokio::test]
    async fn the_task_stands_still_while_nobody_reads() {
        let (outbox, watched) = (Outbox::default(), Outbox::default());
        let writer = watched.clone();
        let mut body = Written::by(|_| async move {
            for _ in 0..3 {
                writer.put(vec![Bytes::from_static(b"x")]);
                tokio::task::yield_now().await;
            }
            Status::OK
        });
        body.outbox = outbox;
        assert_eq!(watched.take(), None);
        let waker = std::task::Waker::noop();
        let _ = Pin::new(&mut body).poll_frame(&mut Context::from_waker(waker));
        assert!(watched.take().is_some());
        assert_eq!(watched.take(), None);
    }
}
