//! Concurrent futures whose results are returned in order.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) struct OrderedFutures<'work, T> {
    slots: VecDeque<FutureSlot<'work, T>>,
}

enum FutureSlot<'work, T> {
    Running(Pin<Box<dyn Future<Output = T> + Send + 'work>>),
    Done(T),
}

impl<'work, T> OrderedFutures<'work, T> {
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::new() }
    }

    /// Adds a future; it starts with the next [`OrderedFutures::next`].
    pub(crate) fn push(&mut self, work: impl Future<Output = T> + Send + 'work) {
        self.slots.push_back(FutureSlot::Running(Box::pin(work)));
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The result of the oldest future; never ready if there is none. All futures make progress meanwhile. Cancel-safe.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<T> {
        for slot in &mut self.slots {
            if let FutureSlot::Running(work) = slot
                && let Poll::Ready(result) = work.as_mut().poll(context)
            {
                *slot = FutureSlot::Done(result);
            }
        }
        match self.slots.pop_front() {
            Some(FutureSlot::Done(result)) => Poll::Ready(result),
            Some(running) => {
                self.slots.push_front(running);
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn results_come_in_order_whichever_is_done_first() {
        let mut ordered = OrderedFutures::new();
        let senders: Vec<_> = (0..5)
            .map(|_| {
                let (sender, receiver) = oneshot::channel();
                ordered.push(async move { receiver.await.unwrap() });
                sender
            })
            .collect();
        for (number, sender) in senders.into_iter().enumerate().rev() {
            assert!(tokio::time::timeout(Duration::from_millis(1), ordered.next()).await.is_err());
            sender.send(number).unwrap();
        }
        for number in 0..5 {
            assert_eq!(ordered.len(), 5 - number);
            assert_eq!(ordered.next().await, number);
        }
    }

    #[tokio::test]
    async fn younger_futures_make_progress_meanwhile() {
        let (release, wait) = oneshot::channel::<()>();
        let mut ordered = OrderedFutures::new();
        ordered.push(async move { wait.await.is_ok() });
        // The first one can only finish if the second one runs.
        ordered.push(async move { release.send(()).is_ok() });
        assert!(ordered.next().await);
        assert!(ordered.next().await);
    }

    #[tokio::test]
    async fn an_empty_queue_is_never_ready() {
        let mut ordered = OrderedFutures::<()>::new();
        assert!(tokio::time::timeout(Duration::from_millis(5), ordered.next()).await.is_err());
    }
}
