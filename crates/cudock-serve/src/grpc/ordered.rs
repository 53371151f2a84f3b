//! Many answers in the making, given out in the order they were asked for.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Work that goes on at once and whose results come in order.
pub(crate) struct Ordered<'work, T> {
    slots: VecDeque<Slot<'work, T>>,
}

enum Slot<'work, T> {
    Running(Pin<Box<dyn Future<Output = T> + Send + 'work>>),
    Done(T),
}

impl<'work, T> Ordered<'work, T> {
    /// Nothing to do.
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::new() }
    }

    /// Adds work; it begins with the next [`Ordered::next`].
    pub(crate) fn push(&mut self, work: impl Future<Output = T> + Send + 'work) {
        self.slots.push_back(Slot::Running(Box::pin(work)));
    }

    /// How many results are still to come.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The result of the oldest work, once it is there; never, if there is no work. All work goes on meanwhile. May be
    /// dropped and asked for again.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<T> {
        for slot in &mut self.slots {
            if let Slot::Running(work) = slot
                && let Poll::Ready(result) = work.as_mut().poll(context)
            {
                *slot = Slot::Done(result);
            }
        }
        match self.slots.pop_front() {
            Some(Slot::Done(result)) => Poll::Ready(result),
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
        let mut ordered = Ordered::new();
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
    async fn work_goes_on_while_an_older_one_is_waited_for() {
        let (release, wait) = oneshot::channel::<()>();
        let mut ordered = Ordered::new();
        ordered.push(async move { wait.await.is_ok() });
        // The first can only end if the second runs.
        ordered.push(async move { release.send(()).is_ok() });
        assert!(ordered.next().await);
        assert!(ordered.next().await);
    }

    #[tokio::test]
    async fn without_work_nothing_comes() {
        let mut ordered = Ordered::<()>::new();
        assert!(tokio::time::timeout(Duration::from_millis(5), ordered.next()).await.is_err());
    }
}
